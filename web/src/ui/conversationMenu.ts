// What can be done with a conversation, from the list and from its own page.
import type { Conversation } from '../api/types'
import { archive, removeConversation, update } from '../state/actions'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import type { Item } from './Menu'

export const orderItems = (c: Conversation): Item[] => [
  { label: c.pinned ? 'Unpin from the top' : 'Pin to the top', run: () => void update(c.id, { pinned: !c.pinned }).catch(failed('Not changed')) },
  { label: 'Tags…', run: () => (dialog.value = { kind: 'tags', conversation: c.id }) },
  { label: c.archived ? 'Bring back from the archive' : 'Archive', run: () => void archive(c) },
]

export const deleteItem = (c: Conversation, label: string): Item => ({ label, run: () => removeConversation(c), danger: true })
