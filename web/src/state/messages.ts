// The messages that the page has read, by id. It keeps the most recently used
// ones of all conversations, and so doesn't grow with what is scrolled through.
import { signal } from '@preact/signals'
import type { Message } from '../api/types'

/** limit is some thirty pages: far more than a screen shows. */
const limit = 1500

const read = new Map<string, Message>()

/** hidden are messages that are about to be deleted, with all below them: their siblings count without them. */
export const hidden = new Map<string, Message>()

/** revision changes whenever a message comes in or changes. */
export const revision = signal(0)

export function get(id: string): Message | undefined {
  const m = read.get(id)
  if (m) { // the map's order is that of use
    read.delete(id)
    read.set(id, m)
  }
  return m
}

export const has = (id: string) => read.has(id)

export function put(messages: readonly Message[]) {
  for (const m of messages) {
    read.delete(m.id)
    read.set(m.id, [...hidden.values()].reduce(close, m))
  }
  for (const id of read.keys()) {
    if (read.size <= limit) break
    read.delete(id)
  }
  revision.value++
}

/** add takes in a message that was just stored: its siblings have one more now. */
export function add(m: Message) {
  for (const [id, other] of read) {
    const sibling = other.conversation_id === m.conversation_id && other.parent_id === m.parent_id
    if (sibling && id !== m.id && other.siblings.count !== m.siblings.count) {
      read.set(id, { ...other, siblings: { ...other.siblings, count: m.siblings.count } })
    }
  }
  put([m])
}

/** remove drops a message that was deleted: its siblings close the gap. */
export function remove(m: Message) {
  read.delete(m.id)
  for (const [id, other] of read) read.set(id, close(other, m))
  revision.value++
}

/** close has a message count without one of its siblings. */
function close(m: Message, gone: Message): Message {
  if (m.conversation_id !== gone.conversation_id || m.parent_id !== gone.parent_id) return m
  const { index, count } = m.siblings
  return { ...m, siblings: { index: index > gone.siblings.index ? index - 1 : index, count: count - 1 } }
}

/** forget drops a conversation's messages, which are read again when they are shown. */
export function forget(conversation: string) {
  for (const [id, m] of read) if (m.conversation_id === conversation) read.delete(id)
}
