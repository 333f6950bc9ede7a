// What came of the files of an import.
import { Problem, reason } from '../api/http'
import type { ImportReport } from '../api/types'
import { openConversation } from '../state/actions'
import { imported, type Imported } from '../state/imports'
import { count, number } from '../text/format'
import { Modal } from './Modal'

export function ImportDialog({ imported: all }: { imported: Imported[] }) {
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
            {r.left_out > 0 ? `${r.left_out} of ${count(r.nodes - r.aside, 'message')} could not be read` : 'Every message came in'}; {count(r.notes.length, 'note')} on what was changed
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
