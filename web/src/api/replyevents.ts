// The events of a reply on its way, read from a stream of server-sent events.
import { createParser } from 'eventsource-parser'
import * as positions from './positions'
import type { Message } from './types'

export type ReplyEvent =
  | { type: 'reply.started'; data: { parent_id: string; message?: Message } }
  | { type: 'reply.reasoning'; data: { reasoning: string } }
  | { type: 'reply.delta'; data: { content?: string; refusal?: string; tool_calls?: ToolCallDelta[] } }
  | { type: 'reply.message'; data: { message: Message } }
  | { type: 'reply.completed'; data: { message: Message; position?: string } }
  | { type: 'reply.stopped'; data: { message: Message | null; position?: string } }
  | { type: 'reply.failed'; data: { status: number; code: string; detail: string; message: Message | null; position?: string } }

/** A piece of a tool call, which pieces with the same index complete. */
export interface ToolCallDelta {
  index: number
  id?: string
  function?: { name?: string; arguments?: string }
}

export interface Received {
  id: string | null
  event: ReplyEvent
}

/**
 * read gives the events of an answer as they come, and ends with the answer,
 * whether or not the reply had ended.
 */
export async function* read(response: Response): AsyncGenerator<Received> {
  const before = positions.held()
  let ready: Received[] = []
  const parser = createParser({
    onEvent: ({ id, event, data }) => {
      if (!event?.startsWith('reply.')) return
      const received = { type: event, data: JSON.parse(data) as unknown } as ReplyEvent
      if ('position' in received.data) positions.heard(received.data.position, before)
      ready.push({ id: id ?? null, event: received })
    },
  })
  if (!response.body) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      parser.feed(value)
      const batch = ready
      ready = []
      yield* batch
    }
  } finally {
    reader.cancel().catch(() => {}) // it may be cut off already
  }
}
