// Answers, versions or branches side by side. It is loaded when somebody asks for it.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { giveBack, take } from '../attachments/store'
import { reason } from '../api/http'
import * as api from '../api/coppice'
import type { Message } from '../api/types'
import { next } from '../state/actions'
import * as branch from '../state/branch'
import { dialog, type Comparing } from '../state/dialog'
import { draft } from '../state/drafts'
import { chosen, models } from '../state/models'
import { failed } from '../state/notices'
import { wishes } from '../state/settings'
import { roleName, said } from '../text/content'
import { count, number, when } from '../text/format'
import { Markdown, Typed } from '../ui/Markdown'
import { Modal } from '../ui/Modal'
import { ToolCalls } from '../ui/Tools'
import { ask, branches, goOn, versions, type Column } from './columns'
import { diff } from './diff'

export function Compare({ of }: { of: Comparing }) {
  const [columns, setColumns] = useState<Column[] | null>(null)
  const [error, setError] = useState<Error | null>(null)
  const close = () => (dialog.value = null)
  useEffect(() => {
    if (of.what === 'versions') versions(of.message).then(setColumns, setError)
  }, [of])
  const title = of.what === 'branches' ? 'Compare branches' : of.what === 'versions' ? 'Compare versions' : 'Several answers'
  return (
    <Modal title={title} close={close} wide={columns !== null}>
      {error ? <p class="bad" role="alert">{reason(error)}</p> : columns ? <Columns all={columns} close={close} />
        : of.what === 'ask' ? <Ask message={of.message} show={setColumns} refused={setError} />
          : of.what === 'branches' ? <Other of={of} show={setColumns} refused={setError} /> : <p role="status">Reading…</p>}
      <div class="modal-foot"><button type="button" class="secondary" onClick={close}>Close</button></div>
    </Modal>
  )
}

interface Step {
  show: (columns: Column[]) => void
  refused: (error: Error) => void
}

/** Ask chooses the models that answer. One alone answers twice. */
function Ask({ message, show, refused }: Step & { message: Message | null }) {
  const [picked, pick] = useState<string[]>(() => [...new Set([chosen.peek()?.name ?? '', ...models.peek().map(m => m.name)])].filter(Boolean).slice(0, 2))
  const [busy, setBusy] = useState(false)
  const most = 8
  const begin = async () => {
    setBusy(true)
    const text = draft.peek()
    const content = message ? null : take(text)
    try {
      if (!message && content === null) return setBusy(false)
      const to = message ? { conversation: message.conversation_id, head: message.parent_id! } : await next(content!)
      if (!message) draft.value = ''
      await ask({ ...to, temperature: wishes.peek().temperature }, picked.length === 1 ? [picked[0]!, picked[0]!] : picked, show)
    } catch (error) {
      if (content !== null && draft.peek() === '') {
        draft.value = text
        giveBack(content)
      }
      refused(error as Error)
    }
  }
  return (
    <>
      <p>{message ? 'They answer the same question, beside this answer.' : 'They answer your message side by side.'} One model alone answers twice.</p>
      <fieldset class="compare-models">
        <legend class="unseen">Models</legend>
        {models.value.map(({ name }) => (
          <label key={name}>
            <input
              type="checkbox" checked={picked.includes(name)} disabled={picked.length === most && !picked.includes(name)}
              onChange={() => pick(picked.includes(name) ? picked.filter(p => p !== name) : [...picked, name])}
            />
            <span dir="auto">{name}</span>
          </label>
        ))}
      </fieldset>
      <Ratings />
      <button type="button" class="primary" autoFocus disabled={busy || picked.length === 0} onClick={() => void begin()}>{busy ? 'Asking…' : `Ask for ${Math.max(2, picked.length)} answers`}</button>
    </>
  )
}

/** Ratings tells how answers of each model were taken, where somebody asks. */
function Ratings() {
  const [all, setAll] = useState<Awaited<ReturnType<typeof api.ratings>> | null>(null)
  return (
    <details class="more-settings" onToggle={event => event.currentTarget.open && void api.ratings().then(setAll, failed('The ratings could not be read'))}>
      <summary>How answers were taken</summary>
      {!all ? <p role="status">Reading…</p> : all.data.length === 0 ? <p class="hint">No model has answered yet.</p> : (
        <table class="ratings">
          <thead><tr><th>Model</th><th>kept</th><th>kept of several</th><th>good</th><th>bad</th></tr></thead>
          <tbody>
            {all.data.map(m => (
              <tr key={m.model}>
                <th scope="row" dir="auto">{m.model}</th>
                <td>{m.kept} of {m.answers}</td>
                <td>{m.compared > 0 ? `${m.compared_kept} of ${m.compared}` : '–'}</td>
                <td>{m.rated_up || '–'}</td>
                <td>{m.rated_down || '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {all && !all.complete && <p class="hint">Of the last {number(all.conversations)} conversations.</p>}
    </details>
  )
}

/** Other chooses the branch that the shown one is compared with. */
function Other({ of, show, refused }: Step & { of: Extract<Comparing, { what: 'branches' }> }) {
  const [all, setAll] = useState<Message[] | null>(null)
  useEffect(() => void api.branches(of.conversation).then(found => setAll(found.filter(m => m.id !== of.head)), refused), [of])
  if (!all) return <p role="status">Reading…</p>
  if (all.length === 0) return <p>The conversation has one branch only.</p>
  return (
    <>
      <p>Which branch? They are named by their last messages, the newest first.</p>
      <ul class="compare-branches">
        {all.map(m => (
          <li key={m.id}>
            <button type="button" class="entry-button" dir="auto" onClick={() => void branches(of.conversation, of.head, m.id).then(show, refused)}>
              {m.label && <strong>{m.label} </strong>}{said(m).slice(0, 120) || roleName(m.role)}
              <span class="hit-meta">{count(m.depth + 1, 'message')} · {when(m.created_at)}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}

function Columns({ all, close }: { all: Column[]; close: () => void }) {
  const [marks, setMarks] = useState(false)
  const [blind, setBlind] = useState(false)
  const answers = all.every(c => c.messages.value.length < 2)
  const first = answers ? all[0]?.messages.value[0] : undefined
  const running = all.some(c => c.running.value)
  return (
    <>
      <div class="compare-options">
        {answers && <label><input type="checkbox" checked={marks} disabled={running} onChange={() => setMarks(!marks)} /> Mark differences</label>}
        {(answers || blind) && <label><input type="checkbox" checked={blind} onChange={() => setBlind(!blind)} /> Hide names</label>}
        <span class="unseen" role="status">{running ? 'Answers are on their way.' : 'All is there.'}</span>
      </div>
      <div class="compare-columns" tabIndex={0} role="group" aria-label="Side by side">
        {all.map((c, i) => (
          <ColumnView
            key={c.id} column={c} name={blind ? `Answer ${'ABCDEFGH'[i] ?? i + 1}` : c.name} close={close}
            against={marks && first ? (i > 0 ? first : all[1]?.messages.value[0]) : undefined}
          />
        ))}
      </div>
      {all.every(c => c.running.value || c.messages.value.at(-1)?.role === 'assistant')
        ? <GoOn all={all} busy={running} /> : answers && <p class="hint">The others stay as versions, behind ‹ ›.</p>}
    </>
  )
}

/** GoOn sends a message to all columns. */
function GoOn({ all, busy }: { all: readonly Column[]; busy: boolean }) {
  const field = useRef<HTMLTextAreaElement>(null)
  const which = all.length === 2 ? 'both' : `all ${all.length}`
  return (
    <form
      class="compare-on"
      onSubmit={event => {
        event.preventDefault()
        const text = field.current!.value.trim()
        if (!text || busy) return
        field.current!.value = ''
        void goOn(all, text, wishes.peek().temperature).then(took => {
          if (field.current?.value === '' && !took.includes(true)) field.current.value = text
        })
      }}
    >
      <textarea ref={field} rows={1} dir="auto" aria-label={`Message to ${which}`} placeholder={`Go on with ${which}…`} />
      <button type="submit" class="secondary" disabled={busy}>Send to {which}</button>
    </form>
  )
}

function ColumnView({ column: c, name, against, close }: { column: Column; name: string; against?: Message | undefined; close: () => void }) {
  const keep = () => {
    close()
    branch.toNewest(c.id, 'keep').catch(failed('The branch was not opened'))
  }
  const stop = () => void api.stop(branch.path.peek()!.conversation, c.reply).catch(failed('The answer goes on'))
  const running = c.running.value
  return (
    <section class="compare-column" aria-label={name} aria-busy={running}>
      <h3 dir="auto">{name}</h3>
      {c.messages.value.map(m => <Told key={m.id} message={m} alone={c.messages.value.length === 1} against={against} />)}
      {running && <div class="body">{c.text.value ? <Markdown text={c.text.value} growing /> : <p class="doing"><span class="caret" />{c.thinks.value ? 'The model thinks' : 'The model is reading'}…</p>}</div>}
      {!running && c.messages.value.length === 0 && !c.problem.value && <p class="hint">Nothing came of it.</p>}
      {c.problem.value && <p class="bad" role="alert">{reason(c.problem.value)}</p>}
      <footer>
        {running ? <button type="button" class="secondary" onClick={stop}>Stop</button>
          : c.messages.value.length > 0 && <button type="button" class="primary" onClick={keep}>Keep this one</button>}
        <span class="compare-about">{c.about.value}</span>
      </footer>
    </section>
  )
}

function Told({ message, alone, against }: { message: Message; alone: boolean; against?: Message | undefined }) {
  const text = said(message)
  const other = against ? said(against) : null
  const pieces = useMemo(() => (other === null ? null : diff(text, other)), [text, other])
  return (
    <div class="body">
      {!alone && <h4>{roleName(message.role)}</h4>}
      {other !== null && !pieces && <p class="hint">They are too unlike, or too long, to mark what differs.</p>}
      {pieces ? <p class="plain" dir="auto">{pieces.map((p, i) => (p.own ? <ins key={i}>{p.text}</ins> : p.text))}</p>
        : message.role === 'assistant' ? <Markdown text={text} /> : <Typed text={text} />}
      <ToolCalls calls={message.tool_calls ?? []} />
    </div>
  )
}
