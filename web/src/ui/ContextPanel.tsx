// What the model gets for this branch, message by message.
import { useState } from 'preact/hooks'
import { reason } from '../api/http'
import type { ContextMessage } from '../api/types'
import { copy, showMessage } from '../state/actions'
import { budget, context, pieces, problem, type Piece } from '../state/context'
import { calls, textOf } from '../text/content'
import { count, number } from '../text/format'
import { Bar, CompactButton, Legend } from './BudgetBar'
import { SummaryCard } from './FoldMarker'
import { Plain } from './Markdown'
import { ToolCalls } from './Tools'

const kinds: Record<Piece['kind'], string> = { prefix: 'Prefix', summary: 'Summary', turn: 'Turn', tail: 'Tail', repair: 'Repair' }

export function ContextPanel() {
  const c = context.value
  const b = budget.value
  if (problem.value && !c) return <p class="side-empty">The context could not be read: {reason(problem.value)}</p>
  if (!c || !b) return <p class="side-empty">Reading what the model sees…</p>
  return (
    <div class="context">
      <div class="context-head">
        <Bar b={b} />
        <Legend b={b} />
        <div class="context-actions">
          <CompactButton />
          <button type="button" class="plain-button" onClick={() => void copy(JSON.stringify(c.messages, null, 2))}>Copy as JSON</button>
          <span class="hint">{count(c.messages.length, 'message')}</span>
        </div>
        {!c.complete && <p class="context-warning">There is no room for {count(c.omitted_messages, 'message')}: neither in it, nor folded.</p>}
      </div>
      <Pieces />
    </div>
  )
}

/** page is how many messages are listed at once; a long tail is listed on demand. */
const page = 100

function Pieces() {
  const c = context.value!
  const [extra, setExtra] = useState(0)
  const all = pieces.value
  const from = Math.max(0, all.length - page - extra)
  const shown = all.flatMap((piece, i) => (i >= from || piece.kind !== 'tail' ? [{ piece, i }] : []))
  const cutAt = shown.findIndex(({ i }) => i >= from)
  return (
    <ol class="pieces">
      {shown.map(({ piece, i }, n) => (
        <>
          {from > 0 && n === cutAt && (
            <li key="more" class="pieces-more"><button type="button" class="plain-button" onClick={() => setExtra(extra + page)}>Show {Math.min(page, from)} before these</button></li>
          )}
          <PieceRow key={`${piece.kind} ${piece.id} ${i}`} piece={piece} message={c.messages[i]!} />
        </>
      ))}
    </ol>
  )
}

function PieceRow({ piece, message }: { piece: Piece; message: ContextMessage }) {
  const [open, setOpen] = useState(false)
  const text = textOf(message.content)
  const gist = text.slice(0, 200).replaceAll(/\s+/g, ' ').trim() || calls(message)
  return (
    <li class={`piece ${piece.kind} ${open ? 'open' : ''}`}>
      <button type="button" class="piece-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={`tag ${piece.kind}`}>{kinds[piece.kind]}</span>
        <span class="piece-role">{message.role}</span>
        <span class="piece-tokens">{piece.tokens === null ? '' : number(piece.tokens)}</span>
        {!open && <span class="piece-gist" dir="auto">{gist}</span>}
      </button>
      {open && (
        <div class="piece-body">
          <Plain text={text} />
          <ToolCalls calls={message.tool_calls ?? []} />
          {piece.kind === 'tail' && piece.id && (
            <button type="button" class="plain-button" onClick={() => void showMessage(piece.id)}>Show in the branch</button>
          )}
          {piece.kind === 'summary' && <details class="rest"><summary>Where it comes from</summary><SummaryCard conversation={context.value!.conversation_id} id={piece.id} /></details>}
          {piece.kind === 'turn' && <p class="hint">Nobody wrote this. It lets user and assistant take turns, which some models ask for.</p>}
          {piece.kind === 'repair' && <p class="hint">The branch doesn’t have this message. Without it the model’s provider would refuse the rest.</p>}
        </div>
      )}
    </li>
  )
}
