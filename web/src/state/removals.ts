// Messages that are about to be deleted alone: what follows them stays. A deletion waits
// some seconds, in which it can be taken back. Until then the server has the message, and
// this tab alone shows it as deleted. A tab that closes deletes it at once.
import { signal } from '@preact/signals'
import * as api from '../api/coppice'
import type { Message } from '../api/types'
import * as branch from './branch'
import { later } from './deletions'
import * as messages from './messages'
import { failed } from './notices'
import * as replies from './replies'
import { tell } from './tabs'

/** waiting are such messages, by their ids. */
export const waiting = signal<ReadonlyMap<string, Message>>(new Map())

function change(how: (all: Map<string, Message>) => void) {
  const all = new Map(waiting.peek())
  how(all)
  waiting.value = all
}

/** begin shows a message as deleted, and deletes it some seconds later. */
export function begin(m: Message) {
  change(all => all.set(m.id, m))
  later('1 message deleted. What follows stays.', () => void finish(m), () => change(all => all.delete(m.id)))
}

/** early tells that a reply below a message would be cut, or that another deletion still waits for a message below it, which has another id afterwards. */
const early = (m: Message) =>
  replies.live.peek().some(l => l.conversation === m.conversation_id && l.running)
  || [...waiting.peek().values(), ...messages.hidden.values()].some(other => other.conversation_id === m.conversation_id && other.depth > m.depth)

async function finish(m: Message) {
  while (waiting.peek().has(m.id) && early(m)) await new Promise(done => setTimeout(done, 300))
  if (!waiting.peek().has(m.id)) return
  try {
    await api.removeMessage(m.conversation_id, m.id)
    tell({ conversation: m.conversation_id })
    // What followed has other ids now.
    if (branch.path.peek()?.ids.includes(m.id)) await branch.reopen(m.conversation_id)
  } catch (error) {
    failed('The message was not deleted')(error)
  } finally {
    change(all => all.delete(m.id))
  }
}

/** start deletes what waits when the tab closes. */
export function start() {
  addEventListener('pagehide', () => {
    for (const m of waiting.peek().values()) void api.removeMessage(m.conversation_id, m.id, true).catch(() => {})
  })
}
