// What a model thought before its answer: one line, the rest on demand. It is open
// or closed by the id of the message, so that it stays open when the answer is
// stored, and when its row leaves the screen and comes back.
import { signal } from '@preact/signals'
import { duration } from '../text/format'
import { Markdown } from './Markdown'

const opened = signal<ReadonlySet<string>>(new Set())

interface Thought {
  id: string
  text: string
  /** It is still coming. */
  running?: boolean
  /** How long it took, in milliseconds; null where that isn't known. */
  took: number | null
}

export function Reasoning({ id, text, running = false, took }: Thought) {
  const open = opened.value.has(id)
  const toggle = (now: boolean) => {
    if (now === open) return
    const next = new Set(opened.peek())
    if (now) next.add(id)
    else next.delete(id)
    opened.value = next
  }
  return (
    <details class={`reasoning ${running ? 'running' : ''}`} open={open} onToggle={event => toggle(event.currentTarget.open)}>
      <summary>
        <span class="reasoning-title">{running ? 'Thinking…' : took !== null && took >= 500 ? `Thought for ${duration(took)}` : 'Thoughts'}</span>
        {running && !open && <span class="reasoning-gist" dir="auto" aria-hidden="true">{lastLine(text)}</span>}
      </summary>
      {open && <div class="reasoning-body"><Markdown text={text} growing={running} /></div>}
    </details>
  )
}

/** lastLine is the line that is being thought. */
const lastLine = (text: string) => text.slice(-400).trimEnd().split('\n').at(-1)!.slice(-160)
