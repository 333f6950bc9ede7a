// The frame that draws diagrams. It gets text and gives SVG. It has no network and
// an origin of its own (embed.go, DiagramsPolicy), so what a diagram's text makes
// Mermaid do stays in here.
import mermaid from 'mermaid'

interface Request {
  id: number
  text: string
  dark: boolean
}

/** colours follow the page's (style/tokens.css). */
const colours = (dark: boolean) => dark
  ? { primaryColor: '#1f3529', primaryTextColor: '#e4e7e1', primaryBorderColor: '#74c69d', lineColor: '#a1a89d', secondaryColor: '#29233a', tertiaryColor: '#212520', background: '#151714', mainBkg: '#1f3529', textColor: '#e4e7e1', darkMode: true }
  : { primaryColor: '#e2f0e8', primaryTextColor: '#1e211d', primaryBorderColor: '#1d6b4c', lineColor: '#5d635a', secondaryColor: '#f1ecfa', tertiaryColor: '#f7f7f4', background: '#ffffff', mainBkg: '#e2f0e8', textColor: '#1e211d', darkMode: false }

const fontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'

async function draw({ id, text, dark }: Request) {
  mermaid.initialize({
    startOnLoad: false, securityLevel: 'strict', theme: 'base', themeVariables: { ...colours(dark), fontFamily, fontSize: '14px' }, fontFamily,
    suppressErrorRendering: true, htmlLabels: false, flowchart: { htmlLabels: false }, maxTextSize: 20_000, maxEdges: 500,
  })
  try {
    const { svg } = await mermaid.render(`diagram-${id}`, text)
    const element = new DOMParser().parseFromString(svg, 'text/html').querySelector('svg')!
    const box = element.viewBox.baseVal
    element.setAttribute('width', String(Math.ceil(box.width))) // as an image it has no room to fill
    element.setAttribute('height', String(Math.ceil(box.height)))
    element.style.maxWidth = ''
    return { id, svg: new XMLSerializer().serializeToString(element) }
  } catch (error) {
    return { id, problem: error instanceof Error ? error.message : String(error) }
  }
}

let turn: Promise<unknown> = Promise.resolve() // one at a time: Mermaid has one set of colours
addEventListener('message', event => {
  if (event.source !== parent) return
  turn = turn.then(() => draw(event.data as Request)).then(answer => parent.postMessage(answer, '*'))
})
parent.postMessage({ id: 0 }, '*')
