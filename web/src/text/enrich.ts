// What a block of Markdown gets after it is on the page: colours for code, the
// shape of formulas, diagrams. Each comes in a part of its own that is loaded when
// there is something for it, so that the page itself stays small.
import { draw } from './diagrams'
import { purify } from './markdown'
import { offerPreview, previews } from './preview'
import { returns } from '../state/connection'

type Highlight = typeof import('./highlight')
type Math = typeof import('./math')

let colours: Highlight | null = null
let shapes: Math | null = null

const common = new Set(['bash', 'sh', 'zsh', 'cpp', 'c', 'h', 'hpp', 'cc', 'diff', 'patch', 'go', 'golang', 'java', 'json', 'jsonc', 'python', 'py', 'rust', 'rs', 'sql', 'xml', 'html', 'svg', 'yaml', 'yml',
  'typescript', 'ts', 'tsx', 'javascript', 'js', 'jsx', 'mjs', 'shell', 'console', 'shellsession', 'postgres', 'postgresql', 'pgsql', 'vue', 'svelte'])

/** plain are names of languages that have no colours. */
const plain = new Set(['', 'text', 'txt', 'plain', 'plaintext', 'none', 'output', 'log', 'mermaid'])

const loadColours = once(() => import('./highlight').then(m => (colours = m)))
const loadLanguages = once(() => import('./languages').then(m => loadColours().then(c => m.register(c.hljs))))
const loadShapes = once(() => Promise.all([import('./math'), styles('coppice-math')]).then(([m]) => (shapes = m)))

/** enrich works on a block's elements. What isn't loaded yet is done when it is there, and tells then. */
export function enrich(element: ParentNode) {
  for (const pre of element.querySelectorAll('pre')) {
    const language = pre.dataset['language'] ?? ''
    if (!plain.has(language)) colour(pre, language)
  }
  const formulas = element.querySelectorAll<HTMLElement>('.math:not(.math-set)')
  if (formulas.length === 0) return
  if (shapes) formulas.forEach(shapes.typeset)
  else void untilLoaded(loadShapes).then(() => formulas.forEach(f => !f.classList.contains('math-set') && shapes!.typeset(f)))
}

/** finish gives a block that grows no more its diagrams and previews. */
export function finish(element: ParentNode) {
  for (const pre of element.querySelectorAll('pre')) {
    const language = pre.dataset['language'] ?? ''
    if (previews(language, pre.textContent)) offerPreview(pre)
    if (language === 'mermaid') draw(pre)
  }
}

function colour(pre: HTMLPreElement, language: string) {
  const code = pre.firstElementChild
  if (!code) return
  if (colours?.knows(language)) return fill(code, language)
  const load = common.has(language) ? loadColours : loadLanguages
  void untilLoaded(load).then(() => code.isConnected && colours!.knows(language) && fill(code, language))
}

function fill(code: Element, language: string) {
  const html = colours!.highlight(code.textContent, language)
  if (html !== null) code.replaceChildren(purify(html))
}

/** styles loads the style sheet that a meta element of the page names. */
function styles(name: string): Promise<void> {
  const link = document.createElement('link')
  link.rel = 'stylesheet'
  link.href = document.querySelector<HTMLMetaElement>(`meta[name=${name}]`)!.content
  return new Promise((done, fail) => {
    link.onload = () => done()
    link.onerror = () => fail(new Error('a style sheet is missing'))
    document.head.append(link)
  })
}

/** untilLoaded loads something, and tries again each time that the server is back. */
async function untilLoaded(load: () => Promise<unknown>): Promise<void> {
  const before = returns.peek()
  await load().catch(async () => {
    await new Promise<void>(done => {
      const stop = returns.subscribe(n => n !== before && (queueMicrotask(() => stop()), done()))
    })
    return untilLoaded(load)
  })
}

/** once loads something one time; after a failure it may be tried again. */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | null = null
  return () => (loading ??= load().catch((error: unknown) => {
    loading = null
    throw error
  }))
}
