// The demonstration is what a server that was started with --demo opens with, the
// first time that a browser comes to it.
import { effect } from '@preact/signals'
import { conversations } from './conversations'
import { go, place } from './place'

/** demo is the id that `coppice serve --demo` gives its conversation, on every server. */
const demo = '5c547ece-7328-5026-ab32-15a59da830f0'

const seen = 'coppice.demo'

/** start opens it once the list is there, where nothing else is asked for. */
export function start() {
  if (place.peek().conversation !== null || place.peek().lost || localStorage.getItem(seen)) return
  const stop = effect(() => {
    const all = conversations.value
    if (!all) return
    queueMicrotask(() => stop())
    if (place.peek().conversation !== null || !all.some(c => c.id === demo)) return
    localStorage.setItem(seen, 'opened')
    go({ conversation: demo, head: null }, 'replace')
  })
}
