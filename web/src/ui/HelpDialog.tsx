// What the keyboard does, and who reads: by the key that the browser keeps, or signed in.
import { useEffect, useState } from 'preact/hooks'
import { coppice, forgetKey, key } from '../api/http'
import { dialog } from '../state/dialog'
import { Modal } from './Modal'

const command = /mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘' : 'Ctrl'

const keys: [string[], string][] = [
  [[command, 'K'], 'Search'],
  [['/'], 'Find in this conversation'],
  [[command, 'P'], 'Print this branch'],
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

export function HelpDialog() {
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
          <button type="button" class="plain-button" onClick={() => forgetKey()}>Forget the key</button>
        </p>
      )}
      <Account />
      <div class="modal-foot"><button type="button" class="primary" autoFocus onClick={close}>Close</button></div>
    </Modal>
  )
}

function Account() {
  const [me, setMe] = useState<Awaited<ReturnType<typeof coppice.getMe>>>()
  useEffect(() => void coppice.getMe().then(setMe, () => {}), [])
  if (!me?.sign_out) return null
  return (
    <p class="hint">
      You are signed in as {me.user_id}, {me.role} of {me.tenant_id}.{' '}
      <button type="button" class="plain-button" onClick={() => forgetKey(me.sign_out!)}>Sign out</button>
    </p>
  )
}
