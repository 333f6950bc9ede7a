// What is particular to a conversation: its prompt, what answers in it, and when and
// how it is compacted; also of one that is yet to begin.
import { useEffect, useState } from 'preact/hooks'
import { explain, getTree } from '../api/coppice'
import { Problem, reason } from '../api/http'
import type { Explanation, Message, Node, Preset, Settings } from '../api/types'
import { conversation, headOf, path } from '../state/branch'
import { dialog } from '../state/dialog'
import { models } from '../state/models'
import { failed } from '../state/notices'
import { beginning, change, most, ownPresets, pin, prompt, promptOf, savePreset, settings, wishes, without } from '../state/settings'
import { said } from '../text/content'
import { count, number } from '../text/format'
import { Choice } from './Choice'
import { Modal } from './Modal'
import { SettingEffect } from './SettingEffect'
import { compactionSettings, Field, rareSettings, windowSettings } from './SettingFields'

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
  const [stored] = useState<Settings>(settings)
  const [own, setOwn] = useState(stored)
  const [more, setMore] = useState(rareSettings.some(s => s.key in stored))
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
      if (error instanceof Problem && rareSettings.some(s => error.field === `settings.${s.key}`)) setMore(true)
    } finally {
      setBusy(false)
    }
  }
  const refused = problem instanceof Problem ? problem.field?.replace(/^settings\./, '') : undefined
  const field = (s: (typeof rareSettings)[number]) => (
    <Field
      key={s.key} setting={s} own={own[s.key]} served={s.key in stored ? undefined : told?.settings[s.key]} bad={s.key === refused}
      set={value => {
        setOwn({ ...without(own, s.key), ...(value !== undefined && { [s.key]: value }) })
        setProblem(null)
      }}
    />
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
            <Choice
              label="Model" value={model} choose={setModel} class="bordered"
              choices={[['', 'as chosen beside the message'], ...models.value.map(m => [m.name, m.name] as const)]}
            />
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
        <details class="more-settings" open={more} onToggle={event => setMore(event.currentTarget.open)} onInvalidCapture={() => setMore(true)}>
          <summary>More</summary>
          {rareSettings.map(field)}
        </details>
        <SettingEffect told={told} own={own} stored={stored} />
        <OwnPresets preset={() => ({ ...(text.trim() && { system: text }), ...(model && { model }), ...(temperature !== '' && { temperature: Number(temperature) }), settings: own })} />
        {c && head !== null && <Pins conversation={c.id} />}
        {problem && <p class="bad" role="alert">{reason(problem)}{problem instanceof Problem && problem.field ? ` (${problem.field})` : ''}</p>}
        <div class="modal-foot">
          <button type="button" class="secondary" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={busy}>{another && c ? 'Save as new branch' : 'Save'}</button>
        </div>
      </form>
    </Modal>
  )
}

/** OwnPresets keeps what the dialog says as a preset for new conversations, in this browser. */
function OwnPresets({ preset }: { preset: () => Omit<Preset, 'name'> }) {
  const [name, setName] = useState('')
  const save = () => {
    savePreset({ ...preset(), name: name.trim() })
    setName('')
  }
  return (
    <details class="more-settings">
      <summary>Presets of this browser</summary>
      <label class="setting">
        <span>Keep these as</span>
        <input value={name} maxLength={80} onInput={event => setName(event.currentTarget.value)} />
        <small><button type="button" class="plain-button" disabled={!name.trim()} onClick={save}>Keep</button> A new conversation can begin with it.</small>
      </label>
      {ownPresets.value.length > 0 && (
        <ul class="share-list">
          {ownPresets.value.map(p => (
            <li key={p.name}><span dir="auto">{p.name}</span><button type="button" class="quiet" onClick={() => savePreset({ name: p.name })}>delete</button></li>
          ))}
        </ul>
      )}
    </details>
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
