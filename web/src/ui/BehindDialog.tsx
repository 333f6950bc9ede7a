// The question before a message goes beside one that somebody else sent meanwhile.
import type { Behind } from '../state/dialog'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { Modal } from './Modal'

export function BehindDialog({ behind }: { behind: Behind }) {
  const choose = (how: 'cancel' | 'there' | 'here') => {
    dialog.value = null
    behind.chosen(how).catch(failed('The message was not sent'))
  }
  return (
    <Modal title="There is a newer message" close={() => choose('cancel')}>
      <p>Somebody went on below this branch, in another window or program. Answer that, or start a branch here?</p>
      <div class="modal-foot">
        <button type="button" class="secondary" onClick={() => choose('cancel')}>Cancel</button>
        <button type="button" class="secondary" onClick={() => choose('here')}>Branch here</button>
        <button type="button" class="primary" autoFocus onClick={() => choose('there')}>Answer that</button>
      </div>
    </Modal>
  )
}
