// Search over conversations' titles and over what was said.
import { effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import type { Conversation, Hit } from '../api/types'
import { failed } from './notices'
import { place } from './place'

export interface Results {
  query: string
  titles: Conversation[]
  /** Messages that were found, by conversation. The conversation of the newest one comes first. */
  folders: Folder[]
  /** When the messages were made: the same for all pages. */
  made: { since?: string; before?: string }
  /** The cursor of further messages, null where there are none. */
  more: string | null
}

export interface Folder {
  conversation: string
  title: string
  hits: Hit[]
}

export const query = signal('')

/** A Scope is where is searched. */
export interface Scope {
  /** Only in the conversation that is open. */
  here: boolean
  /** Only in conversations with a tag; '' for all. */
  tag: string
  /** Only for so many days back, or before so many; '' for any time. */
  days: '' | '7' | '31' | '366' | '-366'
}

export const everywhere: Scope = { here: false, tag: '', days: '' }

export const scope = signal<Scope>(everywhere)

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
    const { here } = scope.value
    void (here && place.value.conversation)
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
    const { here, tag, days } = scope.peek()
    const conversation = here && place.peek().conversation
    const among = tag ? await tagged(tag) : null
    let before = cursor === null ? null : results.peek()
    const made: Results['made'] = before?.made ?? (!days ? {} : { [Number(days) > 0 ? 'since' : 'before']: new Date(Date.now() - Math.abs(Number(days)) * 86_400_000).toISOString() })
    for (let pages = 1, at = cursor; ; pages++) {
      const page = await api.search({ query: words, ...made, ...(conversation && { conversation_id: conversation }) }, at, signal)
      if (signal.aborted) return
      const hits = page.data.filter(hit => among?.has(hit.message.conversation_id) ?? true)
      const titles = (page.conversations ?? []).filter(c => !tag || c.tags.includes(tag))
      at = page.next_cursor
      before = { query: words, made, titles: before?.titles ?? titles, folders: sorted(before?.folders ?? [], hits), more: at }
      if (hits.length > 0 || at === null || pages === mostPages) return void (results.value = before)
    }
  } catch (error) {
    if (!signal.aborted) failed('The search failed')(error)
  } finally {
    if (!signal.aborted) searching.value = false
  }
}

/** mostPages is how many pages are read in a row that have nothing of the scope. */
const mostPages = 20

/** tagged are the conversations that have a tag. */
async function tagged(tag: string): Promise<Set<string>> {
  const all = new Set<string>()
  for await (const { id } of api.allConversations(tag)) all.add(id)
  return all
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
