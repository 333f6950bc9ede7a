// Diagrams in Mermaid's language. The program that draws them is large, and writes
// styles and markup of its own. So it runs in a frame that may do nothing else:
// no network, no storage, an origin of its own. The page sends it text and gets a
// picture, which it shows as an image: nothing in an image runs.
import { effect } from '@preact/signals'
import { dark } from '../state/look'
import { drawnUnasked } from './unasked'

interface Drawing {
  svg?: string
  problem?: string
}

/** longest is how much text is drawn, in characters. */
const longest = 20_000

let frame: Promise<Window> | null = null
let last = 0
const waiting = new Map<number, (drawing: Drawing) => void>()

/** open loads the frame. It stands beside the page, because what isn't laid out can't be measured. */
function open(): Promise<Window> {
  const element = document.createElement('iframe')
  element.className = 'diagram-frame'
  element.setAttribute('sandbox', 'allow-scripts')
  element.setAttribute('aria-hidden', 'true')
  element.tabIndex = -1
  element.title = 'Draws diagrams'
  element.src = document.querySelector<HTMLMetaElement>('meta[name=coppice-diagrams]')!.content
  addEventListener('message', event => {
    if (event.source !== element.contentWindow) return
    const answer = event.data as Drawing & { id: number }
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  return new Promise(done => {
    waiting.set(0, () => done(element.contentWindow!)) // its first word is that it is there
    document.body.append(element)
  })
}

async function ask(text: string, dark: boolean): Promise<Drawing> {
  const to = await (frame ??= open())
  return new Promise(done => {
    waiting.set(++last, done)
    to.postMessage({ id: last, text, dark }, '*') // its origin has no name
  })
}

/** drawn are pictures by their text, for each of the two colours. */
const drawn = new Map<string, Drawing>()
const most = 50

/** coming are those that are being drawn. Where they are many already, a diagram waits for the reader. */
const coming = new Set<string>()
const mostComing = 20

const keyOf = (text: string, dark: boolean) => `${dark} ${text}`

async function drawing(text: string, dark: boolean): Promise<Drawing> {
  const key = keyOf(text, dark)
  let found = drawn.get(key)
  if (!found) {
    coming.add(key)
    found = await ask(text, dark).finally(() => coming.delete(key))
    if (drawn.size >= most) drawn.delete(drawn.keys().next().value!)
    drawn.set(key, found)
  }
  return found
}

/** draw draws a diagram: at once, if that takes little time or was done before, and else when the reader asks for it. */
export function draw(pre: HTMLPreElement) {
  const text = pre.textContent
  if (text.length > longest) return
  if (drawn.has(keyOf(text, dark.value)) || (drawnUnasked(text) && coming.size < mostComing)) return picture(pre)
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet'
  button.textContent = 'draw'
  button.setAttribute('aria-label', 'Draw this diagram')
  button.addEventListener('click', () => {
    button.disabled = true
    picture(pre, button)
  })
  pre.parentElement!.querySelector('.code-head span')!.after(button)
}

/** picture puts a diagram over the code that describes it, and the code behind a line that opens. Code that is no diagram stays, and says why. */
function picture(pre: HTMLPreElement, button?: HTMLButtonElement) {
  const box = pre.parentElement!
  const text = pre.textContent
  const image = document.createElement('img')
  image.className = 'diagram'
  const details = document.createElement('details')
  const show = ({ svg, problem: why }: Drawing) => {
    button?.remove()
    if (svg === undefined) {
      return note(box, why ?? '')
    }
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`
    image.alt = `Diagram: ${text.trim().split('\n', 1)[0]!}`
    if (image.parentElement) return
    const summary = document.createElement('summary')
    summary.textContent = 'text of the diagram'
    details.append(summary, ...box.childNodes)
    box.append(image, details)
  }
  const stop = effect(() => {
    const now = dark.value
    void drawing(text, now).then(found => (box.isConnected ? now === dark.value && show(found) : stop()), () => {})
  })
}

/** note says in the line over the code why it isn't drawn. */
function note(box: HTMLElement, why: string) {
  const line = box.querySelector<HTMLElement>('.code-head span')
  if (line) line.textContent = line.title = `mermaid, which can’t be drawn: ${why.split('\n', 1)[0]!}`
}
