// The list of conversations: pinned ones first, then the one changed last.
import { computed, effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import { keyWanted } from '../api/http'
import type { Conversation, ConversationUpdate, TagCount } from '../api/types'
import { returns } from './connection'
import { waiting } from './deletions'
import { failed } from './notices'
import { onChange, tell } from './tabs'

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

/** refresh reads the first page. */
export async function refresh() {
  const { archived, tag } = filter.peek()
  try {
    const [page, all] = await Promise.all([api.listConversations(archived, tag, null), api.listTags()])
    tags.value = all.data
    if (filter.peek().archived !== archived || filter.peek().tag !== tag) return
    conversations.value = page.data
    more.value = page.next_cursor
  } catch (error) {
    if (!keyWanted.peek()) failed('The conversations could not be listed')(error)
  }
}

let reading = false

export async function readMore() {
  if (reading || more.peek() === null) return
  reading = true
  const asked = filter.peek()
  try {
    const page = await api.listConversations(asked.archived, asked.tag, more.peek())
    if (filter.peek() !== asked) return
    const there = new Set(conversations.peek()?.map(c => c.id))
    conversations.value = [...(conversations.peek() ?? []), ...page.data.filter(c => !there.has(c.id))]
    more.value = page.next_cursor
  } catch (error) {
    failed('More conversations could not be listed')(error)
  } finally {
    reading = false
  }
}

/** changed puts a conversation as it is now into the list, at its place, or takes it out. */
export function changed(c: Conversation) {
  const others = (conversations.peek() ?? []).filter(other => other.id !== c.id)
  const { archived, tag } = filter.peek()
  if (c.archived !== archived || (tag && !c.tags.includes(tag))) {
    conversations.value = others
    return
  }
  const place = others.findIndex(other => (other.pinned === c.pinned ? other.updated_at <= c.updated_at : c.pinned))
  others.splice(place < 0 ? others.length : place, 0, c)
  conversations.value = others
}

export function gone(id: string) {
  conversations.value = (conversations.peek() ?? []).filter(c => c.id !== id)
}

/** update changes a conversation's title, order or settings. */
export async function update(id: string, change: ConversationUpdate) {
  const c = await api.updateConversation(id, change)
  changed(c)
  if (change.tags || change.archived !== undefined) void api.listTags().then(all => (tags.value = all.data), () => {})
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
