// The dialogs. A question before something is deleted and the key that the server asks
// for are in the first load, and the others come with a part of the page.
import { useRef, useState } from 'preact/hooks'
import { keyRefused, keyWanted, setKey } from '../api/http'
import { returns } from '../state/connection'
import { dialog, type Confirm } from '../state/dialog'
import { imported, importing } from '../state/imports'
import { failed } from '../state/notices'
import { lazy } from './lazy'
import { Modal } from './Modal'

const more = () => import('./moreDialogs')
const MoreDialog = lazy(() => more().then(m => m.MoreDialog))
const ImportDialog = lazy(() => more().then(m => m.ImportDialog))

export function Dialogs() {
  const d = dialog.value
  return (
    <>
      {keyWanted.value && <KeyDialog />}
      {d?.kind === 'confirm' && <ConfirmDialog confirm={d} />}
      {d && d.kind !== 'confirm' && <MoreDialog dialog={d} />}
      {imported.value && <ImportDialog imported={imported.value} />}
      {importing.value !== null && <p class="progress" role="status">Importing {importing.value}…</p>}
    </>
  )
}

function ConfirmDialog({ confirm }: { confirm: Confirm }) {
  const [busy, setBusy] = useState(false)
  const close = () => (dialog.value = null)
  const run = async () => {
    setBusy(true)
    await confirm.run().catch(failed(confirm.title))
    close()
  }
  return (
    <Modal title={confirm.title} close={close}>
      <p dir="auto">{confirm.text}</p>
      <div class="modal-foot">
        <button type="button" class="secondary" autoFocus onClick={close}>Cancel</button>
        <button type="button" class="primary danger" disabled={busy} onClick={() => void run()}>{confirm.action}</button>
      </div>
    </Modal>
  )
}

function KeyDialog() {
  const field = useRef<HTMLInputElement>(null)
  return (
    <Modal title="This server needs a key" close={() => {}}>
      <form
        method="dialog"
        onSubmit={event => {
          event.preventDefault()
          const secret = field.current!.value.trim()
          if (!secret) return
          setKey(secret)
          returns.value++ // read everything that was refused
        }}
      >
        <p><code>coppice keys create NAME</code> makes one. This browser keeps it, and sends it to this server only.</p>
        <input
          ref={field} type="password" aria-label="Key" placeholder="cop_…" autocomplete="off" autoFocus
          aria-invalid={keyRefused.value} aria-describedby={keyRefused.value ? 'key-refused' : undefined}
        />
        {keyRefused.value && <p class="bad" id="key-refused" role="alert">The server doesn’t take this key. It may be mistyped, or revoked.</p>}
        <div class="modal-foot"><button type="submit" class="primary">Use this key</button></div>
      </form>
    </Modal>
  )
}
