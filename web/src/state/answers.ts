// In which conversations of the list an answer is on its way, and in which one has come
// that nobody has looked at yet.
import { effect, signal } from '@preact/signals'
import { place } from './place'

/** running are the answers on their way, by conversation. */
export const running = signal<ReadonlyMap<string, ReadonlySet<string>>>(new Map())

/** unseen are conversations in which an answer ended while another one was open. */
export const unseen = signal<ReadonlySet<string>>(new Set())

/** begins notes an answer. */
export function begins(conversation: string, id: string) {
  const its = new Set(running.peek().get(conversation)).add(id)
  running.value = new Map(running.peek()).set(conversation, its)
}

/** ends notes its end. */
export function ends(conversation: string, id: string) {
  const its = new Set(running.peek().get(conversation))
  if (!its.delete(id)) return
  const all = new Map(running.peek())
  if (its.size > 0) all.set(conversation, its)
  else all.delete(conversation)
  running.value = all
  if (place.peek().conversation !== conversation) unseen.value = new Set(unseen.peek()).add(conversation)
}

/** start takes the mark off a conversation that is opened. */
export function start() {
  effect(() => {
    const id = place.value.conversation
    if (id === null || !unseen.peek().has(id)) return
    const rest = new Set(unseen.peek())
    rest.delete(id)
    unseen.value = rest
  })
}
