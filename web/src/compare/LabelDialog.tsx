// The label and the note of a message, or of the branch that ends in it.
import { useRef } from 'preact/hooks'
import type { Message } from '../api/types'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { rate } from '../state/settings'
import { Modal } from '../ui/Modal'

export function LabelDialog({ message }: { message: Message }) {
  const label = useRef<HTMLInputElement>(null)
  const note = useRef<HTMLTextAreaElement>(null)
  const close = () => (dialog.value = null)
  return (
    <Modal title="Label and note" close={close}>
      <form
        method="dialog" class="label-form"
        onSubmit={event => {
          event.preventDefault()
          const to = { label: label.current!.value.trim() || null, note: note.current!.value.trim() || null }
          close()
          void rate(message, to).catch(failed('Not changed'))
        }}
      >
        <p class="hint">By a label you find a message, or the branch that ends in it, again. No model reads either.</p>
        <label>Label <input ref={label} maxLength={60} defaultValue={message.label ?? ''} autoFocus dir="auto" /></label>
        <label>Note <textarea ref={note} rows={4} maxLength={1000} defaultValue={message.note ?? ''} dir="auto" /></label>
        <div class="modal-foot">
          <button type="button" class="secondary" onClick={close}>Cancel</button>
          <button type="submit" class="primary">Save</button>
        </div>
      </form>
    </Modal>
  )
}
