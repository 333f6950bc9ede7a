// A preview of HTML and SVG that an answer holds. It stands in a frame that has an origin of
// its own, no network and no storage: its scripts run, and see nothing of the page.

/** longest is how much is shown, in characters. */
const longest = 1_000_000

/** previews tells whether code of a language can be shown. */
export const previews = (language: string, text: string) =>
  text.length <= longest && (language === 'html' || language === 'svg' || (language === 'xml' && /^\s*(<\?xml[^>]*>\s*)?<svg\b/.test(text)))

/** offerPreview puts a button over code that shows it, and takes it away again. */
export function offerPreview(pre: HTMLPreElement) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet'
  button.textContent = 'preview'
  button.setAttribute('aria-pressed', 'false')
  button.addEventListener('click', () => {
    const shown = pre.parentElement!.querySelector('iframe')
    button.setAttribute('aria-pressed', String(!shown))
    if (shown) return shown.remove()
    const frame = document.createElement('iframe')
    frame.className = 'preview'
    frame.title = 'Preview'
    frame.setAttribute('sandbox', 'allow-scripts')
    frame.src = document.querySelector<HTMLMetaElement>('meta[name=coppice-preview]')!.content
    frame.addEventListener('load', () => frame.contentWindow!.postMessage(pre.textContent, '*'), { once: true }) // its origin has no name
    pre.before(frame)
  })
  pre.parentElement!.querySelector('.code-head span')!.after(button)
}
