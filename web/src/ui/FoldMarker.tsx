// The rule in the transcript at which the folded messages end. It opens the
// summary that the model reads in their place.
import { useEffect, useState } from 'preact/hooks'
import { signal } from '@preact/signals'
import * as api from '../api/coppice'
import { reason } from '../api/http'
import type { Context, Origin, Summary } from '../api/types'
import { foldedTokens, undo } from '../state/context'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { count, number, short, when, whenFully } from '../text/format'
import { lazy } from './lazy'
import { Markdown } from './Markdown'

const Differences = lazy(() => import('./moreDialogs').then(m => m.Differences))

/** opened is the summary whose text is shown. */
const opened = signal<string | null>(null)

export function FoldMarker({ context }: { context: Context }) {
  const summary = context.summary!
  const open = opened.value === summary.id
  const before = foldedTokens.value
  const fresh = Date.now() - Date.parse(summary.created_at) < 5000
  return (
    <article class={`fold ${open ? 'open' : ''}`} aria-label="Folded messages">
      <button type="button" class="fold-rule" aria-expanded={open} onClick={() => (opened.value = open ? null : summary.id)}>
        <Strip before={before} after={summary.tokens} fresh={fresh} />
        <span class="fold-text">
          <span title={before === null ? undefined : `${number(before)} → ${number(summary.tokens)} tokens`}>
            {count(context.counts.folded, 'message')} folded{before !== null && ` · ${short(before)} → ${short(summary.tokens)} tokens`}
          </span>
          <Imported origin={summary.origin} />
        </span>
      </button>
      {open && <SummaryCard conversation={context.conversation_id} id={summary.id} />}
    </article>
  )
}

/** Strip is the fold on the line beside the branch. Its height tells the tokens that are folded, ten pixels for each doubling, and its foot what is left of them. */
function Strip({ before, after, fresh }: { before: number | null; after: number; fresh: boolean }) {
  const tokens = Math.max(before ?? 0, after, 1)
  const height = Math.round(Math.max(24, 10 * Math.log2(tokens / 64)))
  const left = Math.max(3, (height * after) / tokens)
  return (
    <svg class={`fold-strip ${fresh ? 'fresh' : ''}`} width="20" height={height} aria-hidden="true">
      <rect width="20" height={height} />
      <path class="pleats" d={`M10 0V${height}`} />
      <rect class="rest" width="20" height={left} y={height - left} />
    </svg>
  )
}

/** Imported marks a summary whose text came from outside. */
function Imported({ origin }: { origin: Origin | null }) {
  if (!origin) return null
  const said = `Nobody has checked it against the messages. Imported ${whenFully(origin.imported_at)}${origin.format && ` from a file of the format ${origin.format}`}.`
  return <span class="tag imported" title={said}>{origin.merged ? 'from an imported summary' : 'imported'}</span>
}

/** SummaryCard is a summary's text, where it comes from, and the way to undo it. */
export function SummaryCard({ conversation, id }: { conversation: string; id: string }) {
  const [shown, show] = useState(id)
  const [summary, setSummary] = useState<Summary | null>(null)
  const [problem, setProblem] = useState('')
  const [prior, setPrior] = useState<string | null>(null) // the text of the one before, to compare
  useEffect(() => show(id), [id])
  useEffect(() => {
    let current = true
    setProblem('')
    setPrior(null)
    api.getSummary(conversation, shown).then(s => current && setSummary(s), (error: unknown) => current && setProblem(reason(error)))
    return () => void (current = false)
  }, [conversation, shown])

  if (problem) return <p class="summary-card">The summary could not be read: {problem}</p>
  if (!summary) return <div class="summary-card"><p class="skeleton-text">Reading the summary…</p></div>
  const compare = async () => {
    if (prior !== null) return setPrior(null)
    await api.getSummary(conversation, summary.prior_summary_id!).then(s => setPrior(s.text), failed('The earlier summary could not be read'))
  }
  return (
    <div class="summary-card">
      <p class="summary-facts">
        Summary by <strong>{summary.model}</strong>, <time dateTime={summary.created_at} title={whenFully(summary.created_at)}>{when(summary.created_at)}</time>,{' '}
        {number(summary.tokens)} tokens{summary.kept_ids.length > 0 && `, with ${count(summary.kept_ids.length, 'message')} kept word for word`}. <Imported origin={summary.origin} />
      </p>
      <div class="summary-text" tabIndex={0} role="group" aria-label="Text of the summary">{prior === null ? <Markdown text={summary.text} /> : <Differences before={prior} after={summary.text} />}</div>
      <div class="summary-foot">
        {summary.prior_summary_id && (
          <span class="hint">
            {summary.prior ? <>Merged from an earlier summary. <button type="button" class="plain-button" onClick={() => show(summary.prior_summary_id!)}>Show it</button>{' '}
            <button type="button" class="plain-button" aria-pressed={prior !== null} onClick={() => void compare()}>Compare</button></> : 'Merged from an earlier summary, which was deleted.'}
          </span>
        )}
        {shown !== id && <button type="button" class="plain-button" onClick={() => show(id)}>Back to the newest</button>}
        <span class="spring" />
        {shown === id && <button type="button" class="plain-button" onClick={() => (dialog.value = { kind: 'compact', again: summary })}>Make again…</button>}
        {shown === id && <button type="button" class="plain-button" onClick={() => void undo(conversation, id)}>Undo the summary</button>}
      </div>
    </div>
  )
}
