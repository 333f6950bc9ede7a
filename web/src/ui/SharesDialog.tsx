// The links to branches of a conversation: make one, copy it, revoke it.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { listShares, newShare, revokeShare } from '../api/coppice'
import type { Share } from '../api/types'
import { copy } from '../state/actions'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { inTurn } from '../state/turns'
import { when, whenFully } from '../text/format'
import { Choice } from './Choice'
import { Modal } from './Modal'

/** lasts are days, with words for them. */
const lasts = [['1', 'a day'], ['7', 'a week'], ['30', 'a month'], ['365', 'a year'], ['', 'for ever']] as const

export function SharesDialog({ conversation, head }: { conversation: string; head: string }) {
  const [all, setAll] = useState<Share[]>([])
  const [link, setLink] = useState('')
  const [days, setDays] = useState<(typeof lasts)[number][0]>('7')
  const [summaries, setSummaries] = useState(false)
  const [busy, setBusy] = useState(false)
  const close = () => (dialog.value = null)
  const reload = useMemo(() => inTurn(() => listShares(conversation).then(page => setAll(page.data)).catch(failed('The links could not be read'))), [conversation])
  useEffect(() => void reload(), [reload])
  const during = (work: Promise<unknown>, what: string) => {
    setBusy(true)
    void work.then(reload).catch(failed(what)).finally(() => setBusy(false))
  }
  const make = async () => {
    const expires = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : undefined
    const made = await newShare(conversation, head, { summaries, expires_at: expires })
    setLink(`${location.origin}/shared/${made.token}`)
  }
  return (
    <Modal title="Share this branch" close={close}>
      <p>Anybody who has the link reads this branch up to its last message, and nothing else: no other branch, nothing that comes later, and no system prompt.</p>
      <p class="share-options">
        <span>The link lasts <Choice label="The link lasts" value={days} choices={lasts} choose={setDays} /></span>
        <label><input type="checkbox" checked={summaries} onChange={e => setSummaries(e.currentTarget.checked)} /> with the summary that the model reads</label>
      </p>
      {link && (
        <p class="share-link">
          <input type="text" readOnly value={link} aria-label="Link" onFocus={e => e.currentTarget.select()} />
          <button type="button" class="secondary" onClick={() => void copy(link)}>Copy</button>
        </p>
      )}
      {link && <p class="hint">It is shown only now. A link that is lost can be revoked, and another one made.</p>}
      {all.length > 0 && <h3>Links of this conversation</h3>}
      <ul class="share-list">
        {all.map(s => (
          <li key={s.id}>
            <span title={whenFully(s.created_at)}>
              Made {when(s.created_at)}{s.head_id === head ? ' of this branch' : ''}, {lasting(s)}
            </span>
            <button type="button" class="quiet" disabled={busy} onClick={() => during(revokeShare(conversation, s.id), 'Not revoked')}>revoke</button>
          </li>
        ))}
      </ul>
      <div class="modal-foot">
        <button type="button" class="secondary" onClick={close}>Close</button>
        <button type="button" class="primary" autoFocus disabled={busy} onClick={() => during(make(), 'No link was made')}>Make a link</button>
      </div>
    </Modal>
  )
}

function lasting(s: Share): string {
  if (!s.expires_at) return 'lasts until it is revoked'
  return Date.parse(s.expires_at) > Date.now() ? `ends ${whenFully(s.expires_at)}` : 'has ended'
}
