// The dialogs: a question before something is deleted, what an import brought,
// the key that the server asks for, and what the keyboard does.
import { useRef, useState } from 'preact/hooks'
import { forgetKey, key, keyRefused, keyWanted, Problem, reason, setKey } from '../api/http'
import type { ImportReport } from '../api/types'
import { openConversation } from '../state/actions'
import { returns } from '../state/connection'
import { dialog, type Confirm } from '../state/dialog'
import { imported, importing, type Imported } from '../state/imports'
import { failed } from '../state/notices'
import { count, number } from '../text/format'
import { BehindDialog } from './BehindDialog'
import { ExportDialog } from './ExportDialog'
import { GraftDialog } from './GraftDialog'
import { Modal } from './Modal'
import { SettingsDialog } from './SettingsDialog'
import { SharesDialog } from './SharesDialog'
import { TagsDialog } from './TagsDialog'

export function Dialogs() {
  const d = dialog.value
  return (
    <>
      {keyWanted.value && <KeyDialog />}
      {d?.kind === 'confirm' && <ConfirmDialog confirm={d} />}
      {d?.kind === 'behind' && <BehindDialog behind={d} />}
      {d?.kind === 'graft' && <GraftDialog graft={d} />}
      {d?.kind === 'help' && <HelpDialog />}
      {d?.kind === 'settings' && <SettingsDialog />}
      {d?.kind === 'tags' && <TagsDialog id={d.conversation} />}
      {d?.kind === 'export' && <ExportDialog conversation={d.conversation} head={d.head} />}
      {d?.kind === 'shares' && <SharesDialog conversation={d.conversation} head={d.head} />}
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

function ImportDialog({ imported: all }: { imported: Imported[] }) {
  const close = () => (imported.value = null)
  return (
    <Modal title={all.some(one => one.report) ? 'Imported' : 'Not imported'} close={close}>
      {all.map(one => (
        <section key={one.file} class="import">
          <h3>{one.file}</h3>
          {one.report ? <Report report={one.report} close={close} /> : <NoReport error={one.error!} />}
        </section>
      ))}
      <div class="modal-foot"><button type="button" class="primary" autoFocus onClick={close}>Done</button></div>
    </Modal>
  )
}

/** NoReport says why a file was not imported. A file that is no export may have been meant for a message. */
function NoReport({ error }: { error: Error }) {
  if (!(error instanceof Problem && error.code === 'unknown_format')) return <p class="bad">{reason(error)}</p>
  return (
    <>
      <p class="bad">No message was found in it. To send a file with a message, drop it on the message field.</p>
      <details>
        <summary>What is read</summary>
        <p>{reason(error)}</p>
      </details>
    </>
  )
}

function Report({ report: r, close }: { report: ImportReport; close: () => void }) {
  const first = r.first_conversation_id
  return (
    <>
      <p>
        {count(r.conversations, 'conversation')}, {count(r.messages, 'message')}
        {r.summaries > 0 && `, ${count(r.summaries, 'summary', 'summaries')}`}
        {r.attachments > 0 && `, ${count(r.attachments, 'picture or file', 'pictures and files')}`} on {count(r.leaves, 'branch', 'branches')}
        , from {r.format}.{' '}
        {r.added === 0 ? 'All of it was there before.' : `${number(r.added)} new${r.present > 0 ? `, ${number(r.present)} were there before` : ''}.`}
        {first && (
          <>
            {' '}
            <a
              href={`/c/${first}`}
              onClick={event => {
                event.preventDefault()
                close()
                openConversation(first)
              }}
            >
              {r.conversations === 1 ? 'Open it' : 'Open the first'}
            </a>
          </>
        )}
      </p>
      {r.notes.length > 0 && (
        <details>
          <summary>
            {r.left_out > 0 ? `${count(r.left_out, 'message')} could not be read` : 'Every message came in'}; {count(r.notes.length, 'note')} on what was changed
          </summary>
          <ul class="notes">
            {r.notes.slice(0, 200).map((n, i) => (
              <li key={i}><strong>{n.action}</strong> {[n.conversation, n.place].filter(Boolean).join(', ')}: {n.detail}</li>
            ))}
            {r.notes.length > 200 && <li>and {r.notes.length - 200} more</li>}
          </ul>
        </details>
      )}
    </>
  )
}

const command = /mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘' : 'Ctrl'

const keys: [string[], string][] = [
  [[command, 'K'], 'Search'],
  [['⏎'], 'Send; ⇧⏎ makes a line'],
  [[command, '⏎'], 'Send, also while editing'],
  [['↑'], 'Edit your last message'],
  [['Esc'], 'Stop the answer, or close what is open'],
  [['['], 'Previous version of the message in view'],
  [[']'], 'Next version'],
  [['m'], 'Map'],
  [['c'], 'What the model sees'],
  [['F2'], 'Rename, in the list of conversations'],
  [['?'], 'This list'],
]

function HelpDialog() {
  const close = () => (dialog.value = null)
  return (
    <Modal title="Keyboard" close={close}>
      <dl class="keys">
        {keys.map(([combination, what]) => (
          <div key={what}>
            <dt>{combination.map(k => <kbd key={k}>{k}</kbd>)}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="hint">
        In the map the arrow keys walk along the tree, ⏎ goes to the message, + and − zoom, 0 fits it in, and . comes back here.
        The API behind this page: <a href="/openapi.yaml">openapi.yaml</a>. Libraries in it: <a href="/assets/licenses.txt">licences</a>.
      </p>
      {key.value !== null && (
        <p class="hint">
          This browser keeps a key of the server, and what you typed and didn’t send.{' '}
          <button type="button" class="plain-button" onClick={forgetKey}>Forget the key</button>
        </p>
      )}
      <div class="modal-foot"><button type="button" class="primary" autoFocus onClick={close}>Close</button></div>
    </Modal>
  )
}
