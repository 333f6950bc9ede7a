// What others change, in other tabs, browsers and programs. The server tells what
// changed and where, and the page reads it again where it shows it. A page that
// nobody looks at doesn't listen: a browser has few connections to a server.
import { effect, signal, untracked } from '@preact/signals'
import { Problem, type ChangeEvent, type Schemas } from '@coppice-chat/client'
import { runningReplies } from '../api/coppice'
import { coppice, keyWanted, reachable } from '../api/http'
import * as answers from './answers'
import * as branch from './branch'
import * as list from './conversations'
import * as messages from './messages'
import { place } from './place'
import * as replies from './replies'
import * as tree from './tree'
import { inTurn } from './turns'

/** behind is the shown head, where somebody else went on below it while it was shown. */
const behind = signal<string | null>(null)

/** isBehind tells whether somebody else went on below the shown head. */
export const isBehind = () => behind.value !== null && behind.value === branch.head.value

/** notice sees by the skeleton that somebody went on below the shown head, where no event told it. */
function notice() {
  let head: string | null = null
  let last = false // of its branch
  effect(() => {
    const id = branch.head.value
    const knot = id !== null && tree.forest.value?.byId.get(id)
    if (id !== head) {
      head = id
      last = false
      behind.value = null
    }
    if (!knot) return
    if (knot.children.length > 0 && last) behind.value = id
    last = knot.children.length === 0
  })
}

const hiddenFor = 30_000

let lastEventId: string | undefined
let abort = new AbortController()

/** listen reads what changes, across broken connections. */
async function listen() {
  for (let wait = 500; ; ) {
    await until(() => !document.hidden && reachable.peek() && !keyWanted.peek())
    abort = new AbortController()
    try {
      for await (const event of coppice.watchTenant({ signal: abort.signal, lastEventId })) {
        wait = 500
        lastEventId = event.id
        take(event)
      }
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return // a server of an older version
      if (error instanceof Problem) lastEventId = undefined
    }
    await new Promise(done => setTimeout(done, wait))
    wait = Math.min(wait * 2, 15_000)
  }
}

async function until(holds: () => boolean) {
  while (!holds()) await new Promise(done => setTimeout(done, 250))
}

function take(event: ChangeEvent) {
  if (event.event !== 'stream.started') changed(event.event, event.data)
  else if (!event.data.resumed) readAgain()
}

let streams = 0

/** readAgain reads what may have changed untold: between two streams all of it, before the first one what was read a moment ago and has changed. */
function readAgain() {
  for (const id of answers.running.peek().keys()) void endMissed(id)
  if (streams++ === 0) {
    void list.again()
    void branch.refreshIfChanged()
  } else {
    void list.refresh()
    void branch.refresh()
  }
  const open = branch.conversation.peek()
  if (open) void joinAll(open.id)
}

/** endMissed notes the end of answers that ended between two streams. */
async function endMissed(id: string) {
  const running = await runningReplies(id).catch((error: unknown) => (error instanceof Problem ? [] : null))
  if (running === null) return // the next stream asks again
  for (const answer of answers.running.peek().get(id) ?? []) if (!running.some(r => r.message_id === answer)) answers.ends(id, answer)
}

/** own tells whether the page made a change itself, or knows of it already. */
function own(type: ChangeEvent['event'], c: Schemas['Change']): boolean {
  const known = (id: string) => messages.has(id) || (tree.forest.peek()?.byId.has(id) ?? false)
  const mine = (id: string) => replies.live.peek().some(l => l.ask.id === id || l.ask.message?.id === id)
  switch (type) {
    case 'messages.appended':
      return c.message_id !== null && (known(c.message_id) || mine(c.message_id))
    case 'messages.pruned':
    case 'summary.deleted':
      return c.conversation_id === tree.forest.peek()?.conversation && !known(c.message_id!)
    case 'head.moved':
      return branch.conversation.peek()?.head_id === c.head_id
    default:
      return false
  }
}

function changed(type: ChangeEvent['event'], c: Schemas['Change']) {
  const id = c.conversation_id
  const open = place.peek().conversation === id // a conversation that is being opened is read again, too
  if (type === 'reply.running') {
    answers.begins(id, c.message_id!)
    if (open) replies.join(id, c.message_id!, c.parent_id!)
    return
  }
  if (c.message_id !== null && (type === 'reply.ended' || type === 'messages.appended')) answers.ends(id, c.message_id)
  if (type === 'reply.ended' || own(type, c)) return
  if (type === 'conversation.deleted') list.gone(id)
  else stale.add(id)
  if (open) {
    shown = true
    if (type === 'messages.appended' && c.parent_id !== null && c.parent_id === branch.head.peek()) behind.value = c.parent_id
  }
  if (!waiting) {
    waiting = true
    setTimeout(() => void bringAlong(), 100)
  }
}

/** stale are conversations to be read again for the list. */
const stale = new Set<string>()
let shown = false // whether the open one is to be read again
let waiting = false

const mostAlone = 5

/** bringAlong reads again what changed within a tenth of a second. */
const bringAlong = inTurn(async () => {
  const ids = [...stale]
  const reread = shown
  stale.clear()
  shown = waiting = false
  if (reread) void branch.refresh()
  if (ids.length > mostAlone) return list.refresh()
  for (const id of ids) await list.read(id)
})

/** joinAll follows the replies that run in a conversation. */
async function joinAll(id: string) {
  const running = await runningReplies(id).catch(() => [])
  if (branch.conversation.peek()?.id !== id) return
  for (const r of running) replies.join(id, r.message_id, r.parent_id)
}

/** start listens, and follows the replies that run in a conversation that is opened. */
export function start() {
  notice()
  void listen()
  let hidden: ReturnType<typeof setTimeout> | undefined
  addEventListener('pagehide', () => abort.abort()) // or a page that is kept for the way back would keep its connection for a minute
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden)
    if (document.hidden) hidden = setTimeout(() => abort.abort(), hiddenFor)
  })
  let before: string | undefined
  effect(() => {
    const id = branch.path.value ? branch.conversation.value?.id : undefined
    if (id === before) return
    before = id
    if (id !== undefined) untracked(() => void joinAll(id))
  })
}
