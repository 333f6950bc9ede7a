// A message's Markdown. Blocks that don't change stay as they are.
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { copy } from '../state/actions'
import { type Block, blocks, fences, longestLine } from '../text/blocks'
import { enrich, finish } from '../text/enrich'
import { Growing } from '../text/growing'
import { render } from '../text/markdown'
import { Code } from './code'

/** longest is the most that is read as Markdown, in characters; more is shown as it is. */
const longest = 250_000

/** grown is what was read last of a text that grew: a message of the same text isn't read again. */
let grown: { text: string; blocks: Block[] } | null = null

/** Markdown shows a text. One that is growing gets more at its end, and is read only there. */
export function Markdown({ text, growing = false }: { text: string; growing?: boolean }) {
  const grower = useRef<Growing | null>(null)
  const parts = useMemo(() => {
    if (!growing) return grown?.text === text ? grown.blocks : attempt(blocks, text)
    grower.current ??= new Growing()
    try {
      if (text.length > longest) return null
      const blocks = grower.current.blocks(text)
      grown = grower.current.whole(blocks) ? { text, blocks } : null
      return blocks
    } catch {
      return null
    }
  }, [text, growing])
  if (!parts) return <Plain text={text} />
  return <div class="prose">{parts.map((block, i) => <BlockView key={i} block={block} growing={growing} />)}</div>
}

/** Typed is what a person typed: as it stands, but for fenced code. */
export function Typed({ text }: { text: string }) {
  const parts = useMemo(() => attempt(fences, text), [text])
  if (!parts) return <Plain text={text} />
  return (
    <div class="prose">
      {parts.map((part, i) => ('text' in part ? <Plain key={i} text={part.text} /> : <BlockView key={i} block={part.block} />))}
    </div>
  )
}

function tooLong(text: string): boolean {
  if (text.length <= longestLine) return false
  return text.length > longest || text.replaceAll(/data:image\/[\w;,+/=-]+/g, '').split('\n').some(line => line.length > longestLine)
}

/** attempt reads Markdown; null stands for text that is too long or nested too deep. */
function attempt<T>(parse: (text: string) => T, text: string): T | null {
  if (tooLong(text)) return null
  try {
    return parse(text)
  } catch {
    return null
  }
}

/** shown is how much of a plain text there is at first, in characters. */
const shown = 50_000

export function Plain({ text }: { text: string }) {
  const cut = text.length > shown
  return (
    <>
      <p class="plain" dir="auto">{cut ? text.slice(0, shown) : text}</p>
      {cut && (
        <details class="rest">
          <summary>{(text.length - shown).toLocaleString('en')} more characters</summary>
          <p class="plain" dir="auto">{text.slice(shown)}</p>
        </details>
      )}
    </>
  )
}

/** left are the blocks that a text has on the page when it stops growing, by what they were made of: the message that takes its place takes them over. */
const left = new Map<string, HTMLElement>()

function leave(whole: string, element: HTMLElement) {
  if (left.size === 0) setTimeout(() => left.clear())
  left.set(whole, element)
}

function BlockView({ block, growing = false }: { block: Block; growing?: boolean }) {
  const element = useRef<HTMLDivElement>(null)
  const code = useRef<Code | null>(null)
  const whole = code.current?.takes(block) ? code.current.whole : block.body === undefined ? block.key : `${block.key} ${block.text.length}`
  useLayoutEffect(() => {
    code.current = null
    const taken = left.get(whole)
    if (taken) element.current!.replaceChildren(...taken.childNodes)
    else {
      const fragment = attempt(() => render(block), '')
      if (!fragment) {
        element.current!.textContent = block.text
        return
      }
      fragment.querySelectorAll('pre').forEach(frame)
      for (const child of fragment.children) (child as HTMLElement).dir ||= 'auto'
      enrich(fragment)
      element.current!.replaceChildren(fragment)
    }
    if (!growing) finish(element.current!)
    code.current = Code.of(block, whole, element.current!)
  }, [whole])
  const leaves = useRef(() => {})
  leaves.current = () => void (growing && leave(whole, element.current!))
  useLayoutEffect(() => () => leaves.current(), [])
  useLayoutEffect(() => code.current?.grow(block))
  return <div class="block" ref={element} />
}

/** frame puts a line over a code block: its language, and a button that copies it. */
function frame(pre: HTMLPreElement) {
  const head = document.createElement('div')
  head.className = 'code-head'
  const language = document.createElement('span')
  language.textContent = pre.dataset['language'] || 'text'
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'quiet'
  button.textContent = 'copy'
  button.setAttribute('aria-label', 'Copy this code')
  button.addEventListener('click', () => void copy(pre.textContent?.replace(/\n$/, '') ?? ''))
  head.append(language, button)
  const frame = document.createElement('div')
  frame.className = 'code'
  frame.dir = 'ltr'
  pre.replaceWith(frame)
  frame.append(head, pre)
  pre.tabIndex = 0 // it may scroll sideways
}
