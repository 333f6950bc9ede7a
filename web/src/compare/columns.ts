// What is shown side by side: answers on their way, versions of a message, or the two
// sides of branches that part.
import { problemOf, type ReplyEvent } from '@coppice-chat/client'
import { batch, signal, type Signal } from '@preact/signals'
import * as api from '../api/coppice'
import type { ComparedSide, Message } from '../api/types'
import * as branch from '../state/branch'
import { leave } from '../state/replies'
import { count, number } from '../text/format'
import { modelOf } from '../text/mark'

export interface Column {
  /** The message that is kept by keeping the column. */
  id: string
  model: string
  messages: Signal<Message[]>
  /** What came of an answer that isn't stored yet. */
  text: Signal<string>
  thinks: Signal<boolean>
  running: Signal<boolean>
  problem: Signal<Error | null>
  about: Signal<string>
}

function column(id: string, model: string, messages: Message[], about = ''): Column {
  return {
    id, model, messages: signal(messages), text: signal(''), thinks: signal(false), running: signal(false), problem: signal(null), about: signal(about),
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
    if (event.event === 'reply.started') {
      const { message_id: id, model, message } = event.data
      leave(id)
      if (message && byId.size === 0) branch.grow(message)
      const c = column(id, model, [])
      c.running.value = true
      byId.set(id, c)
      show([...byId.values()])
      continue
    }
    const c = byId.get(event.data.message_id!)
    if (c) take(c, event)
  }
}

function take(c: Column, event: ReplyEvent) {
  switch (event.event) {
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
        c.messages.value = [stored]
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
