// Replies on their way. A reply goes on when the reader looks elsewhere, and
// its stream is picked up again when the connection breaks or the page is
// loaded anew: the server finishes what it began. The page names the reply and
// the message that it sends, so asking again never doubles anything.
import type { ReplyEvent, StreamOptions } from '@coppice-chat/client'
import { ConnectionError, Problem, problemOf, uuidv7 } from '@coppice-chat/client'
import { batch, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import { giveBack } from '../attachments/store'
import { reachable } from '../api/http'
import type { Message, ToolCall } from '../api/types'
import * as branch from './branch'
import * as list from './conversations'
import { draft } from './drafts'
import * as messages from './messages'
import { textOf } from '../text/content'
import { chosen } from './models'
import { go } from './place'
import { beginAgain, wishes } from './settings'
import * as tree from './tree'

/** What a reply is doing; failed is an end, in which it stays until it is dismissed. */
export type State = 'sending' | 'waiting' | 'thinking' | 'streaming' | 'reconnecting' | 'stopping' | 'failed'

/** A Live is a reply on its way, together with the user's message that it was sent with. */
export class Live {
  readonly state = signal<State>('sending')
  readonly text = signal('')
  /** What the model thinks before it answers. */
  readonly reasoning = signal('')
  /** How long it thought, in milliseconds; null while it does, and where it doesn't. */
  readonly thought = signal<number | null>(null)
  readonly calls = signal<ToolCall[]>([])
  readonly problem = signal<Error | null>(null)
  readonly abort = new AbortController()
  thinksSince: number | null = null
  /** Whether the server has it, and with it the message that was sent. */
  began = false
  /** Whether another tab or program asked for it: then the page stays on its branch. */
  joined = false
  /** The message under which it appears: that which is answered, or the sent one's parent. */
  parent: string | null

  constructor(readonly ask: api.Ask) {
    this.parent = ask.message ? ask.message.parent_id : ask.continue ? (messages.get(ask.head)?.parent_id ?? ask.head) : ask.head
  }

  get conversation() {
    return this.ask.conversation
  }

  /** sent is the user's message while it isn't stored yet. */
  get sent() {
    return this.began ? null : (this.ask.message ?? null)
  }

  get running() {
    return this.state.value !== 'failed'
  }
}

/** live are the replies on their way, the newest last. */
export const live = signal<Live[]>([])

/** at gives the reply to show under a head: the reader's own before others'. */
export const at = (conversation: string, head: string | null): Live | undefined => {
  const here = live.value.filter(l => l.conversation === conversation && l.parent === head)
  return here.findLast(l => !l.joined) ?? here.at(-1)
}

/** made are conversations that this page made for a first message. */
export const made = new Set<string>()

/** begin sends a message, or asks for an answer to what is there, and follows the reply. The chosen model answers where none is named. */
export function begin(ask: Omit<api.Ask, 'id'>) {
  void follow(new Live({ model: chosen.peek()?.name, temperature: wishes.peek().temperature, ...ask, id: uuidv7() }))
}

/** over are replies whose end the page has seen: word that they run may come later than that. */
const over = new Set<string>()

/** leave notes that a reply is followed elsewhere, beside others. */
export const leave = (id: string) => void over.add(id)

/** join follows a reply that runs already, which another tab or program asked for. */
export function join(conversation: string, id: string, parent: string) {
  if (over.has(id) || messages.has(id) || tree.forest.peek()?.byId.has(id)) return
  if (live.peek().some(l => l.ask.id === id)) return
  const l = new Live({ id, conversation, head: parent })
  l.began = l.joined = true
  l.state.value = 'waiting'
  void follow(l)
}

/** again tries once more. What was sent already isn't sent twice. */
export function again(l: Live) {
  dismiss(l)
  void follow(new Live(l.began ? { ...l.ask, head: l.ask.continue ? l.ask.head : (l.parent ?? l.ask.head), message: undefined, id: uuidv7() } : l.ask))
}

export function dismiss(l: Live) {
  l.abort.abort()
  live.value = live.value.filter(other => other !== l)
}

/** discard drops a reply that failed, and goes back to what was there before: to the start, where the conversation was made for it. */
export function discard(l: Live) {
  dismiss(l)
  const p = branch.path.peek()
  if (l.sent && l.parent === null && p?.conversation === l.conversation && made.delete(l.conversation)) {
    beginAgain(branch.conversation.peek()!)
    api.deleteConversation(l.conversation).then(() => list.gone(l.conversation), () => {})
    go({ conversation: null, head: null }, 'replace')
  }
  if (l.sent) {
    draft.value ||= textOf(l.sent.content)
    giveBack(l.sent.content)
  }
  const head = branch.headOf(branch.path.peek())
  if (l.conversation !== branch.path.peek()?.conversation || head !== l.parent) return
  const back = head === null ? branch.reopen(l.conversation) : branch.toNewest(head, 'keep')
  back.catch(() => {}) // the branch as it is shown is one, too
}

/** follow reads a reply's events to its end, across broken connections. */
async function follow(l: Live) {
  untracked(() => (live.value = [...live.value, l]))
  if (!l.joined) {
    branch.aim.value = { to: 'end' }
    note(l)
  }
  const options: StreamOptions = {
    signal: l.abort.signal,
    reconnect: async (attempt, cause) => {
      if (cause instanceof Problem && (attempt > 4 || (cause.status === 429 && !l.began))) throw cause
      if (l.state.peek() !== 'stopping') l.state.value = 'reconnecting'
      await pause(attempt)
    },
  }
  try {
    const stream = l.began ? api.resume(l.conversation, l.ask.id, options) : api.ask(l.ask, options)
    for await (const event of stream) if (take(l, event)) return
    await settle(l, new Error('Its end was missed.'))
  } catch (error) {
    if (l.abort.signal.aborted) return
    if (l.began) await settle(l, error as Error)
    else fail(l, error as Error)
  }
}

/** pause waits longer each time, and while the server is gone. */
async function pause(attempt: number) {
  await new Promise(done => setTimeout(done, Math.min(250 * 2 ** attempt, 5000)))
  while (!reachable.peek()) await new Promise(done => setTimeout(done, 250))
}

/** take handles one event and tells whether it was the last. */
function take(l: Live, event: ReplyEvent): boolean {
  switch (event.event) {
    case 'reply.started':
      started(l, event.data)
      return false
    case 'reply.reasoning':
      if (l.state.peek() !== 'stopping') l.state.value = 'thinking'
      l.thinksSince ??= performance.now()
      write(l, 'reasoning', event.data.reasoning)
      return false
    case 'reply.delta':
      if (l.state.peek() !== 'stopping') l.state.value = 'streaming'
      if (l.thinksSince !== null) l.thought.value ??= performance.now() - l.thinksSince
      write(l, 'text', (event.data.content ?? '') + (event.data.refusal ?? ''))
      if (event.data.tool_calls) l.calls.value = merge(l.calls.peek(), event.data.tool_calls as unknown as ToolCallDelta[])
      return false
    case 'reply.message':
      batch(() => {
        (shows(l) ? branch.grow : branch.know)(event.data.message)
        l.parent = event.data.message.id
        live.value = [...live.value]
      })
      return false
    case 'reply.completed':
    case 'reply.stopped':
      finish(l, event.data.message)
      return true
    case 'reply.failed':
      if (event.data.message) finish(l, event.data.message)
      else fail(l, problemOf(event.data))
      return true
  }
}

function started(l: Live, data: { parent_id: string; message?: Message }) {
  batch(() => {
    l.began = true
    if (data.message && !l.joined) branch.grow(data.message)
    l.parent = data.parent_id
    if (l.state.peek() !== 'stopping') l.state.value = 'waiting'
    live.value = [...live.value]
  })
}

/** unwritten is what the next frame shows: pieces come faster than that. */
const unwritten = new Map<Live, { text: string; reasoning: string }>()

function write(l: Live, what: 'text' | 'reasoning', piece: string) {
  if (!piece) return
  if (unwritten.size === 0) {
    if (document.hidden) setTimeout(flush, 100)
    else requestAnimationFrame(flush)
  }
  const waiting = unwritten.get(l) ?? { text: '', reasoning: '' }
  waiting[what] += piece
  unwritten.set(l, waiting)
}

function flush() {
  batch(() => {
    for (const [l, { text, reasoning }] of unwritten) {
      l.text.value += text
      l.reasoning.value += reasoning
    }
  })
  unwritten.clear()
}

/** A piece of a tool call, which pieces with the same index complete. */
interface ToolCallDelta {
  index: number
  id?: string
  function?: { name?: string; arguments?: string }
}

function merge(calls: ToolCall[], deltas: ToolCallDelta[]): ToolCall[] {
  const out = calls.slice()
  for (const d of deltas) {
    const known = out[d.index]?.function ?? { name: '', arguments: '' }
    out[d.index] = {
      id: d.id ?? out[d.index]?.id ?? '',
      function: { name: known.name + (d.function?.name ?? ''), arguments: known.arguments + (d.function?.arguments ?? '') },
    }
  }
  return out
}

/** finish shows what is stored in place of what came; null where nothing is. */
function finish(l: Live, message: Message | null) {
  const shown = shows(l)
  end(l)
  unwritten.delete(l)
  batch(() => {
    dismiss(l)
    if (message) (shown ? branch.grow : branch.know)(message)
  })
}

/** shows tells whether the page goes along with a reply: with another's only where the reader has none of their own. */
const shows = (l: Live) => !l.joined || untracked(() => at(l.conversation, l.parent)) === l

/** end notes that a reply is over. */
function end(l: Live) {
  if (over.size >= 1000) over.clear()
  over.add(l.ask.id)
  forget(l)
}

function fail(l: Live, error: Error) {
  end(l)
  l.problem.value = error
  l.state.value = 'failed'
  live.value = [...live.value]
}

/** settle finds out what became of a reply whose events are gone. */
async function settle(l: Live, cause: Error) {
  try {
    finish(l, await api.getMessage(l.conversation, l.ask.id))
  } catch (error) {
    if (error instanceof ConnectionError) await pause(0)
    fail(l, cause)
  }
}

/** stop ends a reply. What came so far is stored, and the stream tells. */
export async function stop(l: Live) {
  if (!l.began && !reachable.peek()) return discard(l) // the server knows nothing of it, and won't
  const before = l.state.peek()
  l.state.value = 'stopping'
  try {
    await api.stop(l.conversation, l.ask.id)
  } catch (error) {
    if (error instanceof Problem && error.status === 404) { // the server has nothing of it yet, or no more
      if (!l.began) discard(l)
      return
    }
    l.state.value = before
    throw error
  }
}

// A reload of the page shouldn't lose sight of a reply: session storage keeps
// which ones are on their way.
const stored = 'coppice.replies'

const noted = () => JSON.parse(sessionStorage.getItem(stored) ?? '[]') as api.Ask[]

const note = (l: Live) => sessionStorage.setItem(stored, JSON.stringify([...noted().filter(a => a.id !== l.ask.id), l.ask]))

const forget = (l: Live) => sessionStorage.setItem(stored, JSON.stringify(noted().filter(a => a.id !== l.ask.id)))

/** pickUp follows the replies that were on their way when the page was left. */
export function pickUp() {
  for (const ask of noted()) void follow(new Live(ask))
}
