// What changes on the server, read from a stream of server-sent events.
import { createParser } from 'eventsource-parser'
import type { components } from './openapi'
import { call, send } from './http'
import * as positions from './positions'

type Schemas = components['schemas']

export type Change = Schemas['Change']
export type RunningReply = Schemas['RunningReply']

type Told<E> = E extends { event: infer T; data: infer D } ? { type: T; data: D } : never

export type ChangeEvent = Told<Schemas['WatchEvent']>

export interface Received {
  id: string | null
  event: ChangeEvent
}

/** watch gives what changes in all conversations, from after an event on, until the connection ends. */
export async function* watch(lastEvent: string | null, signal: AbortSignal): AsyncGenerator<Received> {
  let before = positions.held()
  const response = await send('GET', '/v1/events', {
    headers: { Accept: 'text/event-stream', ...(lastEvent !== null && { 'Last-Event-ID': lastEvent }) }, signal,
  })
  let ready: Received[] = []
  const parser = createParser({
    onEvent: ({ id, event, data }) => {
      const received = { type: event, data: JSON.parse(data) as unknown } as ChangeEvent
      if ('position' in received.data) {
        positions.heard(received.data.position, before)
        before = [received.data.position!]
      }
      ready.push({ id: id ?? null, event: received })
    },
  })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
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

/** runningReplies gives the replies that run in a conversation, whoever asked for them. */
export const runningReplies = (conversation: string) =>
  call<Schemas['RunningReplyList']>('GET', `/v1/conversations/${conversation}/replies`).then(list => list.data)
