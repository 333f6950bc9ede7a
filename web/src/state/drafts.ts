// What was typed and not sent, by conversation. It outlives the page.
import { effect, signal, untracked } from '@preact/signals'
import { place } from './place'

/** draft is the text in the composer. */
export const draft = signal('')

const nameOf = (conversation: string | null) => `coppice.draft.${conversation ?? 'new'}`

let at: string | null = null

/** start reads the draft of the place that is shown, and keeps what is typed. */
export function start() {
  effect(() => {
    at = nameOf(place.value.conversation)
    draft.value = untracked(() => localStorage.getItem(at!) ?? '')
  })
  effect(() => {
    const text = draft.value
    try {
      if (text) localStorage.setItem(at!, text)
      else localStorage.removeItem(at!)
    } catch {
      // storage is full: the text stays on the page
    }
  })
}
