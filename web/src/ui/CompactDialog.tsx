// A compaction with wishes, once; also one that makes a summary again.
import { useState } from 'preact/hooks'
import { getSummary } from '../api/coppice'
import type { Summary } from '../api/types'
import { compact, compacting } from '../state/context'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { Differences } from './Differences'
import { Modal } from './Modal'

export function CompactDialog({ again }: { again?: Summary }) {
  const [instructions, setInstructions] = useState('')
  const [keep, setKeep] = useState('')
  const [made, setMade] = useState<Summary | null>(null)
  const close = () => (dialog.value = null)
  const run = async () => {
    const wishes = { ...(instructions.trim() && { instructions: instructions.trim() }), ...(keep && { keep_recent_messages: Number(keep) }) }
    const id = await compact(wishes, again?.id)
    if (id === null || !again) return close()
    setMade(await getSummary(again.conversation_id, id))
  }
  if (again && made) {
    return (
      <Modal title="The summary made again" close={close}>
        <div class="summary-text" tabIndex={0} role="group" aria-label="Differences"><Differences before={again.text} after={made.text} /></div>
        <div class="modal-foot"><button type="button" class="primary" autoFocus onClick={close}>Done</button></div>
      </Modal>
    )
  }
  return (
    <Modal title={again ? 'Make the summary again' : 'Compact with'} close={close}>
      <form
        class="settings"
        onSubmit={event => {
          event.preventDefault()
          void run().catch(failed('The new summary could not be read'))
        }}
      >
        {again && <p>Another one is written from the messages, in its place. Undo brings this one back.</p>}
        <label class="setting wide">
          <span>Instructions, for this time only</span>
          <textarea dir="auto" rows={3} maxLength={4000} autoFocus value={instructions} placeholder="Keep the names and the figures." onInput={event => setInstructions(event.currentTarget.value)} />
        </label>
        {!again && <label class="setting">
          <span>Newest messages that stay as they are</span>
          <input type="number" min={1} max={10_000} value={keep} placeholder="as the settings say" onInput={event => setKeep(event.currentTarget.value)} />
        </label>}
        <div class="modal-foot">
          <button type="button" class="secondary" onClick={close}>Cancel</button>
          <button type="submit" class="primary" disabled={compacting.value}>{compacting.value ? 'Compacting…' : again ? 'Make again' : 'Compact'}</button>
        </div>
      </form>
    </Modal>
  )
}
