// The files that a conversation, or all of them, can be written to.
import { useState } from 'preact/hooks'
import { download, downloadAll, type Form } from '../api/coppice'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { count } from '../text/format'
import { Modal } from './Modal'

const forms: { form: Form; name: string; holds: string; branch?: boolean }[] = [
  { form: 'jsonl', name: 'Coppice', holds: 'All branches, summaries and files. It loses nothing, and can be imported again.' },
  { form: 'markdown', name: 'Markdown', holds: 'This branch, to read.', branch: true },
  { form: 'sillytavern', name: 'SillyTavern', holds: 'This branch, with other versions as swipes.', branch: true },
  { form: 'llama.cpp', name: 'llama.cpp', holds: 'All branches.' },
  { form: 'messages', name: 'Messages', holds: 'This branch as a line of JSON, to fine-tune a model.', branch: true },
]

/** ExportDialog offers the forms of a conversation's file, if one is given, and the file of all conversations. */
export function ExportDialog({ conversation, head }: { conversation?: string; head?: string }) {
  const close = () => (dialog.value = null)
  const [written, write] = useState<number | null>(null)
  const all = () => {
    write(0)
    void downloadAll(write).then(close, error => {
      write(null)
      failed('Not exported')(error)
    })
  }
  return (
    <Modal title="Export" close={close}>
      <ul class="share-list">
        {conversation !== undefined && forms.map(({ form, name, holds, branch }, i) => (
          <li key={form}>
            <span>{holds}</span>
            <button
              type="button" class="secondary" autoFocus={i === 0}
              onClick={() => {
                close()
                void download(conversation, form, branch ? head : undefined).catch(failed('Not exported'))
              }}
            >
              {name}
            </button>
          </li>
        ))}
        <li>
          <span role="status">{written === null ? 'All conversations, archived ones too, in Coppice’s form as one file.' : `${count(written, 'conversation')} written…`}</span>
          <button type="button" class="secondary" disabled={written !== null} autoFocus={conversation === undefined} onClick={all}>Everything</button>
        </li>
      </ul>
      <div class="modal-foot"><button type="button" class="secondary" onClick={close}>Cancel</button></div>
    </Modal>
  )
}
