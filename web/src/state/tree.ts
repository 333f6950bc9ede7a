// The skeleton of the open conversation: every message and summary without its
// text. It is read after the branch is on the screen, and again when another
// tab changed the conversation.
import { signal } from '@preact/signals'
import { getTree } from '../api/coppice'
import type { Message } from '../api/types'
import { build, type Forest, plant } from './forest'
import { hidden } from './messages'

/** forest is the skeleton; a new object whenever it changed. */
export const forest = signal<Forest | null>(null)

// Of what is being read, grown are messages that were stored meanwhile, which it may lack.
let under: { conversation: string; promise: Promise<Forest>; abort: AbortController; grown: Message[] } | null = null

/** load gives the conversation's skeleton, and reads it unless it is there or on its way. */
export function load(conversation: string): Promise<Forest> {
  const there = forest.peek()
  if (there?.conversation === conversation) return Promise.resolve(there)
  if (under?.conversation === conversation) return under.promise
  return reload(conversation)
}

/** reload reads the skeleton anew, and gives the one that is read last. The old one stands meanwhile. */
export function reload(conversation: string): Promise<Forest> {
  under?.abort.abort()
  const abort = new AbortController()
  const grown: Message[] = []
  const promise = getTree(conversation, abort.signal).then(tree => {
    const built = build(conversation, tree.data.filter(n => !hidden.has(n.id)))
    for (const m of grown) plant(built, m.id, m.parent_id, m.role, m.tokens, m.grafted)
    if (under?.abort === abort) {
      under = null
      forest.value = built
    }
    return built
  }, error => {
    if (under?.conversation === conversation && under.abort !== abort) return under.promise
    throw error
  })
  promise.catch(() => {
    if (under?.abort === abort) under = null
  })
  under = { conversation, promise, abort, grown }
  return promise
}

/** leave drops the skeleton of a conversation that is no longer open. */
export function leave() {
  under?.abort.abort()
  under = null
  forest.value = null
}

/** grow puts a message that was just stored into the skeleton. */
export function grow(m: Message) {
  if (under?.conversation === m.conversation_id) under.grown.push(m)
  const f = forest.peek()
  if (f?.conversation !== m.conversation_id || f.byId.has(m.id)) return
  plant(f, m.id, m.parent_id, m.role, m.tokens, m.grafted)
  forest.value = { ...f }
}
