// Search over conversations' titles and over what was said.
import { effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import type { Conversation, Hit } from '../api/types'
import { failed } from './notices'

export interface Results {
  query: string
  titles: Conversation[]
  /** Messages that were found, by conversation. The conversation of the newest one comes first. */
  folders: Folder[]
  /** The cursor of further messages, null where there are none. */
  more: string | null
}

export interface Folder {
  conversation: string
  title: string
  hits: Hit[]
}

export const query = signal('')

/** results is null while nothing is searched for, or nothing has come yet. */
export const results = signal<Results | null>(null)

/** searching is true while results of the query are on their way. */
export const searching = signal(false)

/** marked is the query whose words are marked in a conversation that a hit led to. */
export const marked = signal<{ conversation: string; query: string } | null>(null)

let running = new AbortController()

/** start searches for the query whenever it changes from now on. */
export function start() {
  effect(() => {
    const words = query.value.trimStart() // a blank at the end says that the last word is whole
    untracked(() => {
      running.abort()
      running = new AbortController()
      searching.value = words !== ''
      if (words === '') results.value = marked.value = null
      else void run(words, null, running.signal)
    })
  })
}

async function run(words: string, cursor: string | null, signal: AbortSignal) {
  if (cursor === null) await new Promise(done => setTimeout(done, 150)) // more may be typed
  if (signal.aborted) return
  try {
    const page = await api.search(words, cursor, signal)
    if (signal.aborted) return
    const before = cursor === null ? null : results.peek()
    results.value = {
      query: words, titles: before?.titles ?? page.conversations ?? [], folders: sorted(before?.folders ?? [], page.data), more: page.next_cursor,
    }
  } catch (error) {
    if (!signal.aborted) failed('The search failed')(error)
  } finally {
    if (!signal.aborted) searching.value = false
  }
}

/** sorted puts hits into the folders of their conversations. */
function sorted(folders: readonly Folder[], hits: readonly Hit[]): Folder[] {
  const all = new Map(folders.map(f => [f.conversation, { ...f, hits: f.hits.slice() }]))
  for (const hit of hits) {
    const conversation = hit.message.conversation_id
    const folder = all.get(conversation) ?? { conversation, title: hit.title, hits: [] }
    if (!folder.hits.some(other => other.message.id === hit.message.id)) folder.hits.push(hit)
    all.set(conversation, folder)
  }
  return [...all.values()]
}

/** readMore finds further messages. */
export function readMore() {
  const r = results.peek()
  if (!r?.more || searching.peek()) return
  searching.value = true
  void run(r.query, r.more, running.signal)
}
