// The server's coming and going. While it is gone the page asks for it at
// growing intervals; what was typed and what is shown stay.
import { computed, effect, signal } from '@preact/signals'
import { health } from '../api/coppice'
import { reachable } from '../api/http'

/** gone is true while the server doesn't answer. */
export const gone = computed(() => !reachable.value)

/** returns counts how often the server came back; what it missed is read again then. */
export const returns = signal(0)

const longest = 10_000

let trying = false

async function knock() {
  if (trying) return
  trying = true
  for (let wait = 500; !reachable.peek(); wait = Math.min(wait * 2, longest)) {
    await new Promise(done => setTimeout(done, wait))
    await health().catch(() => {}) // it sets reachable
  }
  trying = false
  returns.value++
}

/** start asks for the server whenever it is gone. */
export function start() {
  effect(() => {
    if (gone.value) void knock()
  })
  addEventListener('offline', () => (reachable.value = false))
}
