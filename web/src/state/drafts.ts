// What was typed and not sent, by conversation. It outlives the page.
import { effect, signal, untracked } from '@preact/signals'
import { place } from './place'

/** draft is the text in the composer. */
export const draft = signal('')

const nameOf = (conversation: string | null) => `coppice.draft.${conversation ?? 'new'}`

let at: string | null = null

/** rest is how long nothing is typed before the text is kept, in milliseconds. */
const rest = 250

let unkept: ReturnType<typeof setTimeout> | undefined

/** keep puts what is typed into the browser's storage. */
function keep() {
  clearTimeout(unkept)
  if (unkept === undefined) return
  unkept = undefined
  const text = draft.peek()
  try {
    if (text) localStorage.setItem(at!, text)
    else localStorage.removeItem(at!)
  } catch {
    // storage is full: the text stays on the page
  }
}

/** start reads the draft of the place that is shown, and keeps what is typed. */
export function start() {
  effect(() => {
    const name = nameOf(place.value.conversation)
    untracked(() => {
      keep()
      at = name
      draft.value = localStorage.getItem(name) ?? ''
    })
  })
  effect(() => {
    void draft.value
    clearTimeout(unkept)
    unkept = setTimeout(keep, rest)
  })
  addEventListener('pagehide', keep)
}
