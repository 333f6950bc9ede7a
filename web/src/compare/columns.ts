// What is shown side by side: answers on their way, versions of a message, or the two
// sides of branches that part.
import { problemOf, uuidv7, type ReplyEvent } from '@coppice-chat/client'
import { batch, signal, type Signal } from '@preact/signals'
import * as api from '../api/coppice'
import type { ComparedSide, Message } from '../api/types'
import { chosen, models } from '../state/models'
import * as branch from '../state/branch'
import { leave } from '../state/replies'
import { count, number } from '../text/format'
import { modelOf } from '../text/mark'

export interface Column {
  /** The message that is kept by keeping the column. */
  id: string
  name: string
  /** The last reply that was asked for. */
  reply: string
  messages: Signal<Message[]>
  /** What came of an answer that isn't stored yet. */
  text: Signal<string>
  thinks: Signal<boolean>
  running: Signal<boolean>
  problem: Signal<Error | null>
  about: Signal<string>
}

function column(id: string, name: string, messages: Message[], about = ''): Column {
  return {
    id, name, reply: id, messages: signal(messages), text: signal(''), thinks: signal(false), running: signal(false), problem: signal(null), about: signal(about),
  }
}

const tokens = (m: Message) => `${number(m.tokens)} tokens`

/** versions are a message and its siblings. */
export const versions = async (m: Message): Promise<Column[]> =>
  (await api.versions(m.conversation_id, m.parent_id)).filter(v => v.role === m.role).map(v => column(v.id, modelOf(v) ?? `Version ${v.siblings.index}`, [v], tokens(v)))

/** branches are the two sides of branches, from where they part. */
export async function branches(conversation: string, left: string, right: string): Promise<Column[]> {
  const found = await api.compare(conversation, left, right)
  const side = (s: ComparedSide, name: string) => column(s.head_id, name, s.data, [
    count(s.messages, 'message'), `${number(s.tokens)} tokens`, ...s.replies.models.map(m => m.model),
    ...(s.replies.cost === null ? [] : [`cost ${s.replies.cost.toPrecision(2)}`]),
    ...(s.next_cursor === null ? [] : [`the last ${number(s.data.length)} are shown`]),
  ].join(' · '))
  return [side(found.left, 'This branch'), side(found.right, 'The other one')]
}

/** ask has models answer at once, and calls show with the columns each time that one begins. */
export async function ask(to: Omit<api.Ask, 'id'>, models: string[], show: (columns: Column[]) => void) {
  const byId = new Map<string, Column>()
  for await (const event of api.askSeveral(to.conversation, to.head, {
    models, ...(to.message && { message: to.message }), ...(to.temperature !== undefined && { temperature: to.temperature }),
  })) {
    const id = event.data.message_id!
    if (event.event === 'reply.started') {
      if (event.data.message && byId.size === 0) branch.grow(event.data.message)
      byId.set(id, column(id, event.data.model, []))
      show([...byId.values()])
    }
    const c = byId.get(id)
    if (c) take(c, event)
  }
}

/** goOn sends a message to each column, and has its model answer there. The active branch stays. It tells which columns took the message. */
export const goOn = (all: readonly Column[], content: string, temperature?: number) => Promise.all(all.map(async c => {
  const last = c.messages.peek().at(-1)!
  const { id: head, conversation_id: conversation } = last
  const id = uuidv7()
  const wrote = models.peek().find(m => m.name === modelOf(last)) ?? chosen.peek()
  batch(() => {
    c.reply = id
    c.running.value = true
    c.problem.value = null
  })
  leave(id)
  try {
    const message = { id: uuidv7(), role: 'user' as const, content, parent_id: head }
    for await (const event of api.ask({ id, conversation, head, message, model: wrote?.name, temperature, move_head: false }, {})) {
      if (event.event === 'reply.started' && event.data.message) {
        c.messages.value = [...c.messages.peek(), event.data.message]
        branch.know(event.data.message)
      }
      take(c, event)
    }
  } catch (error) {
    c.running.value = false
    c.problem.value = error as Error
  }
  return c.messages.peek().at(-1) !== last
}))

function take(c: Column, event: ReplyEvent) {
  switch (event.event) {
    case 'reply.started':
      leave(event.data.message_id)
      c.text.value = ''
      c.running.value = true
      return
    case 'reply.reasoning':
      c.thinks.value = true
      return
    case 'reply.delta':
      write(c, (event.data.content ?? '') + (event.data.refusal ?? ''))
      return
    case 'reply.completed':
    case 'reply.stopped':
    case 'reply.failed': {
      const stored = event.data.message
      batch(() => {
        c.running.value = false
        if (event.event === 'reply.failed') c.problem.value = problemOf(event.data)
        if (!stored) return
        c.messages.value = [...c.messages.peek(), stored]
        c.about.value = tokens(stored)
      })
      if (stored) branch.know(stored)
    }
  }
}

/** unwritten is what the next frame shows. */
const unwritten = new Map<Column, string>()

function write(c: Column, piece: string) {
  if (unwritten.size === 0) setTimeout(flush, 50)
  unwritten.set(c, (unwritten.get(c) ?? '') + piece)
}

function flush() {
  batch(() => {
    for (const [c, text] of unwritten) {
      c.thinks.value = false
      c.text.value += text
    }
  })
  unwritten.clear()
}
