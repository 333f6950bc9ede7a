// Messages that are about to be deleted, with all below them. A deletion waits some
// seconds, in which it can be taken back. Until then the server has them all, and this
// tab alone hides them. A tab that closes deletes them at once.
import { count } from '../text/format'
import * as api from '../api/coppice'
import type { Message } from '../api/types'
import * as branch from './branch'
import { later } from './deletions'
import * as messages from './messages'
import { failed } from './notices'
import { tell } from './tabs'
import * as tree from './tree'

/** begin hides a message and all below it, so many messages, and deletes them some seconds later. */
export async function begin(m: Message, below: number) {
  messages.hidden.set(m.id, m)
  messages.remove(m)
  await branch.pruned(m)
  later(`${count(below, 'message')} deleted.`, () => void finish(m), () => void bringBack(m).catch(failed('The messages are not shown')))
}

/** reveal shows what was hidden again. */
async function reveal(m: Message) {
  messages.hidden.delete(m.id)
  messages.forget(m.conversation_id) // which count fewer siblings
  if (tree.forest.peek()?.conversation === m.conversation_id) await tree.reload(m.conversation_id)
}

async function bringBack(m: Message) {
  if (!messages.hidden.has(m.id)) return
  await reveal(m)
  if (branch.conversation.peek()?.id === m.conversation_id) await branch.goTo(m.id)
}

async function finish(m: Message) {
  if (!messages.hidden.has(m.id)) return
  try {
    await api.prune(m.conversation_id, m.id)
    messages.hidden.delete(m.id)
    tell({ conversation: m.conversation_id })
  } catch (error) {
    await reveal(m).catch(() => {})
    failed('The messages were not deleted')(error)
  }
}

/** start deletes what waits when the tab closes. */
export function start() {
  addEventListener('pagehide', () => {
    for (const m of messages.hidden.values()) void api.prune(m.conversation_id, m.id, true).catch(() => {})
  })
}
