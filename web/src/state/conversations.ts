// The list of conversations, the one changed last first.
import { effect, signal } from '@preact/signals'
import * as api from '../api/coppice'
import { keyWanted } from '../api/http'
import type { Conversation } from '../api/types'
import { returns } from './connection'
import { failed } from './notices'
import { onChange, tell } from './tabs'

/** conversations is null until the first page came. */
export const conversations = signal<Conversation[] | null>(null)

/** more is the cursor of the next page, null where there is none. */
export const more = signal<string | null>(null)

/** refresh reads the first page. */
export async function refresh() {
  try {
    const page = await api.listConversations('', null)
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
  try {
    const page = await api.listConversations('', more.peek())
    const there = new Set(conversations.peek()?.map(c => c.id))
    conversations.value = [...(conversations.peek() ?? []), ...page.data.filter(c => !there.has(c.id))]
    more.value = page.next_cursor
  } catch (error) {
    failed('More conversations could not be listed')(error)
  } finally {
    reading = false
  }
}

/** changed puts a conversation as it is now into the list, at its place. */
export function changed(c: Conversation) {
  const others = (conversations.peek() ?? []).filter(other => other.id !== c.id)
  const place = others.findIndex(other => other.updated_at <= c.updated_at)
  others.splice(place < 0 ? others.length : place, 0, c)
  conversations.value = others
}

export function gone(id: string) {
  conversations.value = (conversations.peek() ?? []).filter(c => c.id !== id)
}

/** rename gives a conversation another title. */
export async function rename(id: string, title: string) {
  const c = await api.updateConversation(id, { title })
  changed(c)
  tell({ conversation: id })
  return c
}

export async function remove(id: string) {
  await api.deleteConversation(id)
  gone(id)
  tell({ conversation: id })
}

/** start reads the list, and again whenever it may have changed. */
export function start() {
  onChange(() => void refresh())
  effect(() => {
    void returns.value
    if (!keyWanted.value) void refresh()
  })
}
