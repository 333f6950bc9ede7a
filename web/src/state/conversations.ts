// The list of conversations: pinned ones first, then the one changed last.
import { computed, effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import { keyWanted } from '../api/http'
import type { Conversation, ConversationUpdate, TagCount } from '../api/types'
import { returns } from './connection'
import { waiting } from './deletions'
import { failed } from './notices'
import { onChange, tell } from './tabs'
import { inTurn } from './turns'

/** conversations is null until the first page came. */
export const conversations = signal<Conversation[] | null>(null)

/** filter says which conversations the list has. */
export const filter = signal({ archived: false, tag: '' })

/** listed are those that are shown: the ones about to be deleted are not. */
export const listed = computed(() => conversations.value?.filter(c => !waiting.value.has(c.id)) ?? null)

/** tags are those that conversations have, the most used first. */
export const tags = signal<TagCount[]>([])

/** more is the cursor of the next page, null where there is none. */
export const more = signal<string | null>(null)

/** archives tells whether a conversation is archived. */
export const archives = signal(false)

const lookForArchived = inTurn(() => api.listConversations(true, '', null, 1).then(page => void (archives.value = page.data.length > 0), () => {}))

const readTags = inTurn(() => api.listTags().then(all => void (tags.value = all.data)))

/** revision counts what came into the list, and what went. */
let revision = 0

/** again reads the first page. */
export const again = inTurn(async () => {
  const { archived, tag } = filter.peek()
  const before = revision
  try {
    const page = await api.listConversations(archived, tag, null)
    if (filter.peek().archived !== archived || filter.peek().tag !== tag) return
    if (revision !== before) return void again() // the page may be older than what came meanwhile
    revision++
    conversations.value = page.data
    more.value = page.next_cursor
  } catch (error) {
    if (!keyWanted.peek()) failed('The conversations could not be listed')(error)
  }
})

/** refresh reads the first page, and what the list can be filtered by. */
export const refresh = () => {
  void lookForArchived()
  readTags().catch(() => {})
  return again()
}

let reading = false

export async function readMore() {
  if (reading || more.peek() === null) return
  reading = true
  const asked = filter.peek()
  try {
    let page, before
    do {
      if (more.peek() === null) return
      before = revision
      page = await api.listConversations(asked.archived, asked.tag, more.peek())
      if (filter.peek() !== asked) return
    } while (revision !== before) // what came meanwhile may have been left out, or stand in this page as it was
    const there = new Set(conversations.peek()?.map(c => c.id))
    conversations.value = [...(conversations.peek() ?? []), ...page.data.filter(c => !there.has(c.id))]
    more.value = page.next_cursor
  } catch (error) {
    failed('More conversations could not be listed')(error)
  } finally {
    reading = false
  }
}

/** changed puts a conversation as it is now into the list, at its place, or takes it out where it has none in what was read. */
export function changed(c: Conversation) {
  revision++
  if (c.archived) archives.value = true
  const shape = c.shape ?? conversations.peek()?.find(other => other.id === c.id)?.shape // which lists alone bring
  if (shape) c = { ...c, shape }
  const others = (conversations.peek() ?? []).filter(other => other.id !== c.id)
  const { archived, tag } = filter.peek()
  if (c.archived !== archived || (tag && !c.tags.includes(tag))) {
    conversations.value = others
    return
  }
  const place = others.findIndex(other => (other.pinned === c.pinned ? other.updated_at <= c.updated_at : c.pinned))
  if (place >= 0) others.splice(place, 0, c)
  else if (more.peek() === null) others.push(c) // else it comes with its page
  conversations.value = others
}

/** known is changed where there is a list. Else the list that is on its way may be older, and is read again. */
export async function known(c: Conversation) {
  if (conversations.peek() === null) await refresh()
  else changed(c)
}

/** read reads one again: also where the list changed meanwhile, because what comes may be older, or deleted. */
export async function read(id: string) {
  let c, before
  do {
    before = revision
    c = await api.getConversation(id).catch(() => null)
  } while (c && revision !== before)
  if (c) await known(c)
}

export function gone(id: string) {
  revision++
  conversations.value = (conversations.peek() ?? []).filter(c => c.id !== id)
}

/** update changes a conversation's title, order or settings. */
export async function update(id: string, change: ConversationUpdate) {
  const c = await api.updateConversation(id, change)
  changed(c)
  if (change.archived !== undefined) void lookForArchived()
  if (change.tags || change.archived !== undefined) readTags().catch(() => {})
  tell({ conversation: id })
  return c
}

/** start reads the list, and again whenever it may have changed. */
export function start() {
  onChange(() => void refresh())
  let before = filter.peek()
  effect(() => {
    if (filter.value === before) return
    before = filter.value
    conversations.value = more.value = null
    untracked(() => void refresh())
  })
  effect(() => {
    void returns.value
    if (!keyWanted.value) void refresh()
  })
}
