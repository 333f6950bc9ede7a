// A text before and after, with what went and what came marked.
import { useMemo } from 'preact/hooks'
import { diff } from '../compare/diff'

export function Differences({ before, after }: { before: string; after: string }) {
  const [went, came] = useMemo(() => [diff(before, after), diff(after, before)], [before, after])
  return (
    <div class="differences">
      <h3>Before</h3>
      <p class="plain" dir="auto">{went ? went.map((p, i) => (p.own ? <del key={i}>{p.text}</del> : p.text)) : before}</p>
      <h3>Now</h3>
      <p class="plain" dir="auto">{came ? came.map((p, i) => (p.own ? <ins key={i}>{p.text}</ins> : p.text)) : after}</p>
    </div>
  )
}
