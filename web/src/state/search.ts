// Search over conversations' titles and over what was said.
import { effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import type { Conversation, Hit } from '../api/types'
import { failed } from './notices'

export interface Results {
  query: string
  titles: Conversation[]
  hits: Hit[]
}

export const query = signal('')

/** results is null while nothing is searched for, or nothing has come yet. */
export const results = signal<Results | null>(null)

/** searching is true while results of the query are on their way. */
export const searching = signal(false)

let running = new AbortController()

/** start searches for the query whenever it changes from now on. */
export function start() {
  effect(() => {
    const words = query.value.trim()
    untracked(() => {
      running.abort()
      running = new AbortController()
      searching.value = words !== ''
      if (words === '') results.value = null
      else void run(words, running.signal)
    })
  })
}

async function run(words: string, signal: AbortSignal) {
  await new Promise(done => setTimeout(done, 150)) // more may be typed
  if (signal.aborted) return
  try {
    const [titles, hits] = await Promise.all([api.listConversations(words, null, signal), api.search(words, signal)])
    if (signal.aborted) return
    const asked = words.toLowerCase()
    results.value = { query: words, titles: titles.data.filter(c => c.title.toLowerCase().includes(asked)), hits: hits.data }
  } catch (error) {
    if (!signal.aborted) failed('The search failed')(error)
  } finally {
    if (!signal.aborted) searching.value = false
  }
}
