// What is particular to a conversation: its prompt, what answers in it, and when and
// how it is compacted; also of one that is yet to begin.
import { useEffect, useState } from 'preact/hooks'
import { explain, getTree } from '../api/coppice'
import { Problem } from '../api/http'
import type { Explanation, Message, Node, Settings } from '../api/types'
import { conversation, headOf, path } from '../state/branch'
import { dialog } from '../state/dialog'
import { models } from '../state/models'
import { failed } from '../state/notices'
import { beginning, change, most, pin, prompt, promptOf, settings, wishes, without } from '../state/settings'
import { said } from '../text/content'
import { count, number } from '../text/format'
import { Modal } from './Modal'

type Key = keyof Settings

interface Setting {
  key: Key
  label: string
  meaning: string
  /** What it can be, with words for it; none for a number or a text. */
  choices?: [string, string][]
  /** It is a share, shown as percent. */
  share?: boolean
  text?: boolean
}

const windowSettings: Setting[] = [
  { key: 'max_context_tokens', label: 'Window', meaning: 'Tokens that the model takes, its answer included.' },
  { key: 'reserved_tokens', label: 'Kept free', meaning: 'Tokens of the window for the answer.' },
]

const compactionSettings: Setting[] = [
  {
    key: 'compaction', label: 'Compaction', meaning: 'Who has the older part of a branch folded into a summary.',
    choices: [['auto', 'by itself, when it is due'], ['manual', 'only when asked for'], ['off', 'never']],
  },
  { key: 'trigger_ratio', label: 'Due at', meaning: 'Percent of the window that the context fills before a compaction is due.', share: true },
  { key: 'every_n_messages', label: 'Or after', meaning: 'A compaction is due after this many messages, too. 0 is never.' },
  { key: 'keep_ratio', label: 'Stays at the end', meaning: 'Percent of the window for the newest messages, which stay word for word.', share: true },
  { key: 'min_recent_messages', label: 'Messages that stay', meaning: 'The newest so many stay, whatever their size.' },
  { key: 'summary_target_tokens', label: 'Size of a summary', meaning: 'Tokens that a summary should have.' },
  {
    key: 'look_ahead', label: 'The summarizer sees', meaning: 'With what comes later it judges better; without, more branches share a summary.',
    choices: [['recent', 'also what comes after the fold'], ['none', 'what is folded, and no more']],
  },
  {
    key: 'keep_first_user', label: 'Your first message', meaning: 'Whether it stays word for word, as if it were pinned.',
    choices: [['auto', 'stays where tools are called for it'], ['always', 'always stays'], ['never', 'is folded like others']],
  },
  { key: 'instructions', label: 'For every summary', meaning: 'What each summary should take care of.', text: true },
]

export function SettingsDialog() {
  const c = conversation.value
  const head = headOf(path.value)
  const close = () => (dialog.value = null)
  const [before, setBefore] = useState<Message | null>(null)
  const [text, setText] = useState(c ? '' : beginning.peek().system)
  const [copies, setCopies] = useState(true)
  const [reading, setReading] = useState(c !== null && head !== null)
  const [model, setModel] = useState(wishes.peek().model ?? '')
  const [temperature, setTemperature] = useState(wishes.peek().temperature?.toString() ?? '')
  const [own, setOwn] = useState<Settings>({ ...settings() })
  const [told, setTold] = useState<Explanation | null>(null)
  const [problem, setProblem] = useState<Error | null>(null)
  const [busy, setBusy] = useState(false)

  useEffect(() => {
    if (!c || head === null) return
    const abort = new AbortController()
    promptOf(c, head).then(first => {
      setBefore(first)
      setText(first ? said(first) : '')
    }, failed('The prompt could not be read')).finally(() => setReading(false))
    explain(c.id, head, abort.signal).then(setTold, () => {})
    return () => abort.abort()
  }, [])

  const length = path.peek()?.ids.length ?? 0
  const others = length - (before ? 1 : 0)
  const another = c !== null && head !== null && !reading && text.trim() !== (before ? said(before).trim() : '')
  const save = async () => {
    setBusy(true)
    setProblem(null)
    try {
      if (!c) beginning.value = { ...beginning.peek(), system: text }
      const degrees = temperature === '' ? undefined : Number(temperature)
      await change({ ...(model && { model }), ...(degrees !== undefined && { temperature: degrees }) }, own)
      if (c && head !== null && another) await prompt(c, head, before, text, copies && others <= most)
      close()
    } catch (error) {
      setProblem(error as Error)
    } finally {
      setBusy(false)
    }
  }
  const field = (s: Setting) => (
    <Field key={s.key} setting={s} own={own[s.key]} served={told?.settings[s.key]} set={value => { setOwn(withSetting(own, s.key, value)); setProblem(null) }} />
  )
  return (
    <Modal title={c ? 'Prompt and settings' : 'Begin with'} close={close}>
      <form
        class="settings"
        onSubmit={event => {
          event.preventDefault()
          void save()
        }}
      >
        <label class="setting wide">
          <span>System prompt</span>
          <textarea dir="auto" rows={4} value={text} readOnly={reading} autoFocus onInput={event => setText(event.currentTarget.value)} />
        </label>
        {another && (
          <div class="notice-in" role="status">
            <p>The prompt is the first message, and messages never change: this begins a new branch at the top. The present branch stays as it is.</p>
            {others > 0 && others <= most && (
              <label><input type="checkbox" checked={copies} onChange={event => setCopies(event.currentTarget.checked)} /> Copy the {count(others, 'message')} of this branch below it</label>
            )}
            {others > most && <p>This branch has more than {number(most)} messages, so they are not copied.</p>}
          </div>
        )}
        <h3>Answers</h3>
        {models.value.length > 1 && (
          <label class="setting">
            <span>Model</span>
            <select value={model} onChange={event => setModel(event.currentTarget.value)}>
              <option value="">as chosen beside the message</option>
              {models.value.map(m => <option key={m.name} value={m.name}>{m.name}</option>)}
            </select>
            <small>Answers in this conversation.</small>
          </label>
        )}
        <label class="setting">
          <span>Temperature</span>
          <input type="number" min={0} max={2} step={0.1} value={temperature} placeholder="the model’s own" onInput={event => setTemperature(event.currentTarget.value)} />
          <small>0 is the likeliest word each time, 2 the widest choice.</small>
        </label>
        {windowSettings.map(field)}
        <h3>Compaction</h3>
        {compactionSettings.map(field)}
        <Effect told={told} own={own} />
        {c && head !== null && <Pins conversation={c.id} />}
        {problem && <p class="bad" role="alert">{problem.message}{problem instanceof Problem && problem.field ? ` (${problem.field})` : ''}</p>}
        <div class="modal-foot">
          <button type="button" class="secondary" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={busy}>{another && c ? 'Save as new branch' : 'Save'}</button>
        </div>
      </form>
    </Modal>
  )
}

function withSetting(own: Settings, key: Key, value: string | number | undefined): Settings {
  const others = without(own, key)
  return value === undefined ? others : { ...others, [key]: value }
}

/** Field is one setting. Left empty, the server's holds. */
function Field({ setting: s, own, served, set }: {
  setting: Setting
  own: Settings[Key]
  served: Settings[Key]
  set: (value: string | number | undefined) => void
}) {
  const shown = (value: Settings[Key]) => (typeof value === 'number' ? String(s.share ? Math.round(value * 1000) / 10 : value) : String(value ?? ''))
  const empty = own === undefined && served !== undefined ? `${shown(served)} (the server’s)` : 'the server’s'
  if (s.choices) {
    const word = s.choices.find(([value]) => value === served)?.[1]
    return (
      <label class="setting">
        <span>{s.label}</span>
        <select value={String(own ?? '')} onChange={event => set(event.currentTarget.value || undefined)}>
          <option value="">{own === undefined && word ? `${word} (the server’s)` : 'as the server'}</option>
          {s.choices.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
        </select>
        <small>{s.meaning}</small>
      </label>
    )
  }
  if (s.text) {
    return (
      <label class="setting wide">
        <span>{s.label}</span>
        <textarea dir="auto" rows={2} value={shown(own)} placeholder={s.meaning} onInput={event => set(event.currentTarget.value || undefined)} />
      </label>
    )
  }
  return (
    <label class="setting">
      <span>{s.label}{s.share && ', %'}</span>
      <input
        type="number" min={0} step="any" value={shown(own)} placeholder={empty}
        onInput={event => {
          const value = event.currentTarget.value
          set(value === '' ? undefined : s.share ? Number(value) / 100 : Number(value))
        }}
      />
      <small>{s.meaning}</small>
    </label>
  )
}

/** Effect says what the settings do to the branch that is shown, before they are saved. */
function Effect({ told, own }: { told: Explanation | null; own: Settings }) {
  if (!told) return null
  const s = { ...told.settings, ...own }
  const available = Math.max(1, (s.max_context_tokens ?? 0) - (s.reserved_tokens ?? 0))
  const trigger = Math.min(Math.round((s.trigger_ratio ?? 1) * available), s.trigger_cap_tokens ?? Infinity)
  const keep = Math.min(Math.round((s.keep_ratio ?? 0) * available), s.keep_cap_tokens ?? Infinity)
  const used = told.usage.context_tokens
  return (
    <p class="notice-in settings-effect" role="status">
      This branch’s context has {number(used)} tokens. With these settings it may have {number(available)}
      {s.compaction === 'auto'
        ? used > trigger
          ? `, and is compacted with the next message, as it is past ${number(trigger)}.`
          : `, and is compacted when it passes about ${number(trigger)}: in ${number(trigger - used)} more${s.every_n_messages ? `, or after ${number(s.every_n_messages)} messages` : ''}.`
        : s.compaction === 'manual' ? ', and is compacted only when you ask for it.' : ', and is never compacted.'}
      {s.compaction !== 'off' && ` About ${number(keep)} tokens at its end then stay word for word.`}
      {used > available && s.compaction !== 'auto' && ' What has no room is left out of what the model sees.'}
    </p>
  )
}

/** Pins lists the pinned messages of the branch that is shown. */
function Pins({ conversation: id }: { conversation: string }) {
  const [pinned, setPinned] = useState<Node[]>([])
  useEffect(() => {
    const there = new Set(path.peek()?.ids)
    getTree(id, undefined, 80).then(tree => setPinned(tree.data.filter(n => n.pinned && there.has(n.id))), () => {})
  }, [])
  if (pinned.length === 0) return null
  const unpin = (n: Node) =>
    pin({ conversation_id: id, id: n.id }, false).then(() => setPinned(pinned.filter(other => other !== n)), failed('Not unpinned'))
  return (
    <>
      <h3>Pinned messages</h3>
      <ul class="share-list">
        {pinned.map(n => (
          <li key={n.id}><span dir="auto">{n.preview ?? n.role}</span><button type="button" class="quiet" onClick={() => void unpin(n)}>unpin</button></li>
        ))}
      </ul>
    </>
  )
}
