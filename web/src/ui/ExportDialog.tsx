// The files that a conversation can be written to.
import { download, type Form } from '../api/coppice'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { Modal } from './Modal'

const forms: { form: Form; name: string; holds: string; branch?: boolean }[] = [
  { form: 'jsonl', name: 'Coppice', holds: 'All branches, summaries and files. It loses nothing, and can be imported again.' },
  { form: 'markdown', name: 'Markdown', holds: 'This branch, to read.', branch: true },
  { form: 'sillytavern', name: 'SillyTavern', holds: 'This branch, with other versions as swipes.', branch: true },
  { form: 'llama.cpp', name: 'llama.cpp', holds: 'All branches.' },
  { form: 'messages', name: 'Messages', holds: 'This branch as a line of JSON, to fine-tune a model.', branch: true },
]

export function ExportDialog({ conversation, head }: { conversation: string; head?: string }) {
  const close = () => (dialog.value = null)
  return (
    <Modal title="Export" close={close}>
      <ul class="share-list">
        {forms.map(({ form, name, holds, branch }, i) => (
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
      </ul>
      <div class="modal-foot"><button type="button" class="secondary" onClick={close}>Cancel</button></div>
    </Modal>
  )
}
