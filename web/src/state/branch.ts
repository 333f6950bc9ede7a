// The open conversation and the branch that is shown of it.
//
// A branch is a row of slots, one for each depth. How many there are is known
// from the head's depth; their messages come in pages, as they are looked at
// (want), and leave again when they haven't been looked at for long
// (messages.ts). So a branch of 10,000 messages opens like one of ten.
import { type Forest, newest, pathTo } from './forest'
import { batch, computed, effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import { Problem } from '../api/http'
import type { Conversation, Message } from '../api/types'
import { returns } from './connection'
import * as list from './conversations'
import * as messages from './messages'
import { failed } from './notices'
import { go, place } from './place'
import { onChange, tell } from './tabs'
import { inTurn } from './turns'
import * as tree from './tree'

const pageSize = 50

/** A Path is a branch: the ids of its messages by depth, as far as they are known. */
export interface Path {
  conversation: string
  ids: (string | undefined)[]
  /** Whether it begins with a message that is on its way: it has none because it was left, not because there is none. */
  anew?: true
}

export const conversation = signal<Conversation | null>(null)
export const path = signal<Path | null>(null)

/** problem is why nothing could be opened. */
export const problem = signal<Error | null>(null)

/** How the transcript should stand once a new path is shown. */
export type Aim = { to: 'end' } | { to: 'keep'; depth: number } | { to: 'show'; depth: number; id: string }

export const aim = signal<Aim>({ to: 'end' })

/** A Mark is what a switch brought, for as long as it is worth pointing out. */
export interface Mark {
  /** From this depth on the branch is another one. */
  from: number | null
  /** The reader was sent to this message. */
  id: string | null
}

export const mark = signal<Mark | null>(null)

const markedFor = 2500

function point(m: Mark) {
  mark.value = m
  setTimeout(() => mark.peek() === m && (mark.value = null), markedFor)
}

/** seek is a message to show once its conversation is open. */
export const seek = signal<{ conversation: string; depth: number; id: string } | null>(null)

/** head is the shown branch's last message. */
export const head = computed(() => headOf(path.value))

export const headOf = (p: Path | null): string | null => p?.ids.at(-1) ?? null

// The ways to another branch that the page is on: by the address, and by a switch. The last one that is set off on counts.
let arriving = new AbortController()
let turning = new AbortController()

/** setOff ends the ways that the page is on, and gives the signal that ends the next one. */
export function setOff(): AbortSignal {
  arriving.abort()
  turning.abort()
  return (turning = new AbortController()).signal
}

/** settled waits while a conversation is being opened. */
export async function settled() {
  while (place.peek().conversation !== null && !path.peek() && !problem.peek()) await new Promise(done => setTimeout(done, 20))
}

async function arrive(id: string | null, head: string | null) {
  const same = id !== null && path.peek()?.conversation === id
  arriving.abort()
  if (same && head === headOf(path.peek())) return
  turning.abort()
  const { signal } = (arriving = new AbortController())
  if (id === null) return clear()
  try {
    if (same && head !== null) await visit(head, signal)
    else await open(id, head, signal)
  } catch (error) {
    if (signal.aborted) return
    batch(() => {
      path.value = null
      problem.value = error as Error
    })
  }
}

function clear() {
  tree.leave()
  batch(() => {
    conversation.value = path.value = problem.value = mark.value = null
  })
}

/** open shows a conversation that wasn't open. */
async function open(id: string, head: string | null, signal: AbortSignal) {
  clear()
  const [found, page] = await Promise.all([api.getConversation(id, signal), firstPage(id, head, signal)])
  if (signal.aborted) return
  const last = page.at(-1)
  messages.put(page)
  const sought = seek.peek()?.conversation === id ? seek.peek() : null
  seek.value = null
  batch(() => {
    aim.value = sought ? { to: 'show', depth: sought.depth, id: sought.id } : { to: 'end' }
    conversation.value = found
    path.value = pathOf(id, last, page)
    if (sought) point({ from: null, id: sought.id })
  })
  go({ conversation: id, head: last?.id ?? null }, 'replace')
  void tree.load(id).then(fill, () => {})
}

/** firstPage is the end of a branch, or empty where the conversation has no message yet. */
async function firstPage(id: string, head: string | null, signal?: AbortSignal): Promise<Message[]> {
  try {
    return (await api.transcript(id, head ?? 'active', pageSize, signal)).data
  } catch (error) {
    if (head === null && error instanceof Problem && error.code === 'no_active_head') return []
    throw error
  }
}

function pathOf(id: string, head: Message | undefined, page: Message[]): Path {
  const p: Path = { conversation: id, ids: new Array<undefined>(head ? head.depth + 1 : 0).fill(undefined) }
  enter(p, page)
  const knot = head && tree.forest.peek()?.byId.get(head.id)
  if (knot) p.ids = pathTo(knot)
  return p
}

/** enter notes the ids that messages of a path give away. */
function enter(p: Path, page: Message[]) {
  for (const m of page) {
    p.ids[m.depth] = m.id
    if (m.parent_id !== null) p.ids[m.depth - 1] = m.parent_id
  }
}

/** fill completes the path's ids from the skeleton. */
function fill(f: Forest) {
  const p = path.peek()
  const head = headOf(p)
  const knot = head && f.byId.get(head)
  if (p && knot && p.conversation === f.conversation) {
    path.value = { ...p, ids: pathTo(knot) }
  }
}

/** visit shows another branch of the open conversation, as back and forward do. */
async function visit(head: string, signal: AbortSignal) {
  const id = conversation.peek()!.id
  const page = await firstPage(id, head, signal)
  if (signal.aborted) return
  messages.put(page)
  turn(pathOf(id, page.at(-1), page))
}

/** turn replaces the path, and keeps the place where the two part where it is. */
function turn(next: Path, to?: Aim) {
  const before = path.peek()?.ids ?? []
  let parts = 0
  while (parts < next.ids.length && next.ids[parts] === before[parts]) parts++
  batch(() => {
    aim.value = to ?? (parts > 0 && parts < before.length ? { to: 'keep', depth: parts } : { to: 'end' })
    point({ from: parts < next.ids.length && before.length > 0 ? parts : null, id: to?.to === 'show' ? to.id : null })
    path.value = next
  })
}

/**
 * toNewest goes to a message's branch where it was left off, and makes that the
 * conversation's active one.
 */
export async function toNewest(message: string, how: 'keep' | 'show', signal?: AbortSignal) {
  const id = conversation.peek()!.id
  signal ??= setOff()
  const known = messages.hidden.size > 0 ? (await tree.load(id)).byId.get(message) : undefined // what the server knows of may be hidden
  const leaf = known ? newest(known) : await api.newestLeaf(id, message)
  const forest = await tree.load(id).then(f => (f.byId.has(leaf.id) ? f : tree.reload(id)))
  const ids = pathTo(forest.byId.get(leaf.id)!)
  const depth = forest.byId.get(message)?.depth ?? leaf.depth
  await read(id, ids, Math.min(depth + 20, leaf.depth))
  if (signal.aborted || conversation.peek()?.id !== id) return
  turn({ conversation: id, ids }, how === 'keep' ? { to: 'keep', depth } : { to: 'show', depth, id: message })
  go({ conversation: id, head: leaf.id })
  remember(leaf.id)
}

/** goTo shows a message: on the branch that is shown, if it lies there, else on its own newest one. */
export async function goTo(message: string) {
  const p = path.peek()
  const depth = p?.ids.lastIndexOf(message) ?? -1
  if (depth < 0) return toNewest(message, 'show')
  batch(() => {
    aim.value = { to: 'show', depth, id: message }
    point({ from: null, id: message })
  })
}

/** remember makes a branch the one that the conversation opens with. */
function remember(head: string) {
  const c = conversation.peek()
  if (!c || c.head_id === head) return
  conversation.value = { ...c, head_id: head }
  api.updateConversation(c.id, { head_id: head }).then(list.changed, failed('The branch is shown, but not remembered'))
}

/** read gets the page of messages that ends at a depth, unless it is there. */
async function read(id: string, ids: (string | undefined)[], depth: number) {
  const end = ids[depth]
  if (end !== undefined && !messages.has(end)) messages.put((await api.transcript(id, end, pageSize)).data)
}

const underWay = new Set<string>()

/** inView are the depths that are looked at. */
let inView = { from: 0, to: 0 }

let looking = false

/** want sees to it that the messages between two depths come in. What is only scrolled past does not. */
export function want(from: number, to: number) {
  inView = { from, to }
  if (looking) return
  looking = true
  setTimeout(() => {
    looking = false
    fetchMissing(inView.from, inView.to)
  }, 40)
}

function fetchMissing(from: number, to: number) {
  const p = path.peek()
  if (!p) return
  for (let depth = Math.min(to, p.ids.length - 1); depth >= Math.max(0, from); depth--) {
    const id = p.ids[depth]
    if (id === undefined) {
      void tree.load(p.conversation).then(fill, () => {})
      return
    }
    if (messages.has(id)) continue
    if (!underWay.has(id)) void fetchPage(p, id)
    depth -= pageSize - 1
  }
}

async function fetchPage(p: Path, end: string) {
  underWay.add(end)
  try {
    const page = (await api.transcript(p.conversation, end, pageSize)).data
    enter(p, page)
    messages.put(page)
  } catch (error) {
    failed('Some messages could not be read')(error)
    await new Promise(done => setTimeout(done, 3000))
  } finally {
    underWay.delete(end)
    messages.revision.value++ // whoever still lacks it asks again
  }
}

/** know takes in messages that were just stored, and stays on the branch. */
export function know(...stored: Message[]) {
  stored.forEach(m => {
    messages.add(m)
    tree.grow(m)
  })
}

/** changed takes in a message that has another mark now. */
export const changed = (m: Message) => messages.put([m])

/** grow adds messages that were just stored below the head, and goes along. */
export function grow(...stored: Message[]) {
  know(...stored)
  const p = path.peek()
  const last = stored.at(-1)!
  if (p?.conversation !== last.conversation_id || headOf(p) !== stored[0]!.parent_id) return
  const c = conversation.peek()!
  batch(() => {
    conversation.value = { ...c, head_id: last.id, updated_at: last.created_at }
    path.value = { ...p, ids: [...p.ids, ...stored.map(m => m.id)] }
  })
  list.changed(conversation.peek()!)
  go({ conversation: p.conversation, head: last.id }, 'replace')
  tell({ conversation: p.conversation })
}

/** cut shows the branch up to a depth only, as before an edit or a regeneration. */
export function cut(length: number) {
  const p = path.peek()
  if (!p || p.ids.length <= length) return
  batch(() => {
    aim.value = { to: 'keep', depth: length }
    path.value = { conversation: p.conversation, ids: p.ids.slice(0, length), ...(length === 0 && { anew: true }) }
  })
  const head = headOf(path.peek())
  if (head) go({ conversation: p.conversation, head })
}

/** refresh reads again what is shown, after somebody else changed it. */
export const refresh = inTurn(async () => {
  await settled()
  const p = path.peek()
  const c = conversation.peek()
  if (!p || !c) return
  try {
    // What is looked at is in the first page, or read with it.
    const seen = inView.from < p.ids.length - pageSize ? p.ids[Math.min(inView.to, p.ids.length - 1)] : undefined
    const [found, page, forest, view] = await Promise.all([
      api.getConversation(c.id), firstPage(c.id, headOf(p)), tree.reload(c.id),
      seen === undefined ? [] : firstPage(c.id, seen),
    ])
    if (path.peek()?.conversation !== c.id || headOf(path.peek()) !== headOf(p)) return void refresh() // of what is shown now
    messages.forget(c.id)
    messages.put([...page, ...view])
    conversation.value = found
    void list.known(found)
    if (page.length > 0 && p.ids.length === 0 && !p.anew) path.value = pathOf(c.id, page.at(-1), page)
    fill(forest)
  } catch (error) {
    const lost = error instanceof Problem && error.status === 404
    if (lost && headOf(path.peek()) === headOf(p)) await reopen(c.id)
  }
})

/** reopen shows a conversation's active branch, where the one shown is gone. */
export async function reopen(id: string) {
  path.value = null
  go({ conversation: id, head: null }, 'replace')
  await arrive(id, null)
}

/** pruned goes on beside a message that is deleted with all below it. */
export async function pruned(m: Message) {
  const { roots } = await tree.reload(m.conversation_id)
  const next = m.parent_id ?? roots.at(-1)?.id
  if (next !== undefined) return toNewest(next, 'keep')
  setOff()
  path.value = { conversation: m.conversation_id, ids: [], anew: true }
  go({ conversation: m.conversation_id, head: null }, 'replace')
}

/** start shows the place, and reads it again when it may have changed. */
export function start() {
  effect(() => {
    const to = place.value
    untracked(() => void arrive(to.conversation, to.head))
  })
  onChange(change => {
    if (change.conversation !== null && change.conversation === conversation.peek()?.id) void refresh()
  })
  effect(() => {
    if (returns.value > 0) untracked(() => (path.peek() ? void refresh() : void arrive(place.peek().conversation, place.peek().head)))
  })
  let hiddenSince = 0
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) hiddenSince = Date.now()
    else if (Date.now() - hiddenSince > 10_000) void refreshIfChanged()
  })
}

/** refreshIfChanged reads again what is shown, if its end or the conversation tells that it changed. A mark on a message changes no time. */
export async function refreshIfChanged() {
  await settled()
  const c = conversation.peek()
  if (!c) return
  const [found, page] = await Promise.all([api.getConversation(c.id), firstPage(c.id, head.peek())]).catch(() => [])
  const now = conversation.peek()
  if (!found || now?.id !== c.id) return
  const other = found.updated_at !== now.updated_at || found.title !== now.title || found.head_id !== now.head_id
  if (other || page.some(m => JSON.stringify(m) !== JSON.stringify(messages.get(m.id)))) await refresh()
}
