// Conversations that are about to be deleted. A deletion waits some seconds, in which
// it can be taken back. Nothing of it is at the server until then: the browser keeps
// what waits, so that every tab hides it, and so that another tab or the next visit
// deletes what a tab left behind. A tab that closes deletes its own at once.
import { effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import { keyWanted, Problem } from '../api/http'
import { returns } from './connection'
import { dismiss, failed, note } from './notices'

/** undoFor is how long a deletion can be taken back, in milliseconds. */
export const undoFor = 10_000

/** later does something after that time, and says so until then, unless it is taken back. */
export function later(text: string, done: () => void, takeBack: () => void) {
  const undo = () => {
    clearTimeout(timer)
    takeBack()
  }
  const told = note(text, { lasts: undoFor, action: { label: 'Undo', run: undo } })
  const timer = setTimeout(() => {
    dismiss(told)
    done()
  }, undoFor)
}

/** longer is how much later a tab deletes what another one began to delete. */
const longer = 2000

const name = 'coppice.deleting'

/** waiting are the times at which conversations are deleted, by their ids. */
export const waiting = signal<ReadonlyMap<string, number>>(stored())

/** mine are the timers of those that this tab deletes. */
const mine = new Map<string, ReturnType<typeof setTimeout>>()

function stored(): Map<string, number> {
  try {
    const found = JSON.parse(localStorage.getItem(name) ?? '{}') as Record<string, unknown>
    return new Map(Object.entries(found).filter((entry): entry is [string, number] => typeof entry[1] === 'number'))
  } catch {
    return new Map()
  }
}

function change(how: (all: Map<string, number>) => void) {
  const all = stored() // as other tabs left it
  how(all)
  localStorage.setItem(name, JSON.stringify(Object.fromEntries(all)))
  waiting.value = all
}

/** begin hides a conversation, and deletes it some seconds later. */
export function begin(id: string, deleted: (id: string) => void) {
  mine.set(id, setTimeout(() => void finish(id, deleted), undoFor))
  change(all => all.set(id, Date.now() + undoFor))
}

/** takeBack ends the wait. */
export function takeBack(id: string) {
  clearTimeout(mine.get(id))
  mine.delete(id)
  change(all => all.delete(id))
}

const underWay = new Set<string>()

/** finish deletes a conversation, unless that was taken back. What the server's absence hinders is tried again when it is back. */
async function finish(id: string, deleted: (id: string) => void) {
  if (!stored().has(id) || underWay.has(id)) return
  underWay.add(id)
  try {
    await api.deleteConversation(id).catch((error: unknown) => {
      if (!(error instanceof Problem && error.status === 404)) throw error
    })
    takeBack(id)
    deleted(id)
  } catch (error) {
    const refused = error instanceof Problem && error.status < 500 && error.status !== 401 && error.status !== 429
    if (refused) takeBack(id)
    if (refused || error instanceof Problem) failed('The conversation was not deleted')(error)
  } finally {
    underWay.delete(id)
  }
}

/** start takes up what waits. */
export function start(deleted: (id: string) => void) {
  const takeUp = () => {
    for (const [id, at] of stored()) {
      if (!mine.has(id)) setTimeout(() => void finish(id, deleted), Math.min(Math.max(0, at + longer - Date.now()), undoFor + longer))
      else if (at <= Date.now()) void finish(id, deleted)
    }
  }
  addEventListener('storage', event => {
    if (event.key !== name) return
    waiting.value = stored()
    takeUp()
  })
  addEventListener('pagehide', () => {
    for (const id of mine.keys()) if (waiting.peek().has(id)) void api.deleteConversation(id).catch(() => {})
  })
  effect(() => {
    void returns.value
    if (!keyWanted.value) untracked(takeUp)
  })
}
