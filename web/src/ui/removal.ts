import type { Conversation } from '../api/types'
import { removeConversation } from '../state/actions'
import type { Confirm } from '../state/dialog'

/** confirmRemove asks before a conversation is deleted. */
export const confirmRemove = (c: Conversation): Confirm => ({
  kind: 'confirm', title: `Delete “${c.title || 'Untitled'}”`,
  text: 'All its branches and summaries go with it. It can’t be undone; an export beforehand keeps a copy.',
  action: 'Delete the conversation', run: () => removeConversation(c.id),
})
