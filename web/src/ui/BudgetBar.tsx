// How full the model's window is: prefix, summary, tail, free, and a tick at
// the trigger.
import { useState } from 'preact/hooks'
import { budget, compact, compacting, context, type Budget } from '../state/context'
import { showPanel } from '../state/look'
import { count, number } from '../text/format'

const parts = [
  ['prefix', 'Prefix'],
  ['summary', 'Summary'],
  ['tail', 'Tail'],
  ['free', 'Free'],
] as const

export function BudgetBar() {
  const [open, setOpen] = useState(false)
  const b = budget.value
  if (!b) return <div class="budget" />
  const over = b.used > b.trigger
  const percent = Math.round((b.used / b.available) * 100)
  return (
    <div class={`budget ${over ? 'over' : ''}`} onMouseEnter={() => setOpen(true)} onMouseLeave={() => setOpen(false)}>
      <button
        type="button" class="budget-button" aria-label={`The context takes ${percent} percent of the model’s window. Show what the model sees.`}
        onFocus={() => setOpen(true)} onBlur={() => setOpen(false)} onClick={() => showPanel('context')}
      >
        <Bar b={b} />
        <span class="budget-percent">{percent} %</span>
      </button>
      {over && <CompactButton />}
      {open && <Legend b={b} />}
    </div>
  )
}

export function Bar({ b }: { b: Budget }) {
  const share = (n: number) => `${Math.min(100, (n / Math.max(b.available, b.used)) * 100)}%`
  return (
    <span class="bar" aria-hidden="true">
      {parts.slice(0, 3).map(([part]) => b[part] > 0 && <span key={part} class={`bar-part ${part}`} style={{ width: share(b[part]) }} />)}
      {b.trigger < b.available && <span class="bar-tick" style={{ left: share(b.trigger) }} />}
    </span>
  )
}

export function Legend({ b }: { b: Budget }) {
  const left = b.trigger - b.used
  return (
    <div class="legend" role="tooltip">
      <dl>
        {parts.map(([part, label]) => (
          <div key={part}>
            <dt><span class={`swatch ${part}`} />{label}{part === 'summary' && b.kept > 0 && ` with ${b.kept} kept`}</dt>
            <dd>{number(b[part])}</dd>
          </div>
        ))}
      </dl>
      <p>
        {number(b.used)} of {number(b.available)} tokens.{' '}
        {left >= 0 ? `A compaction is due in ${number(left)} more.` : `Past the trigger of ${number(b.trigger)}.`}
        {context.value && !context.value.complete && ` No room for ${count(context.value.omitted_messages, 'message')}.`}
      </p>
    </div>
  )
}

export function CompactButton() {
  return (
    <button type="button" class="plain-button compact" disabled={compacting.value} onClick={() => void compact()}>
      {compacting.value ? 'Compacting…' : 'Compact now'}
    </button>
  )
}
