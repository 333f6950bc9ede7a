import { ConnectionError, CoppiceError, Problem, problemOf } from './errors.js'
import { serverSentEvents } from './events.js'
import { pause, type HTTP } from './http.js'
import type { components } from './openapi.js'

type Schemas = components['schemas']

/** A ChangeEvent tells what changed. Names that this version doesn't know come, too: pass over them. Another stream can go on after its id. */
export type ChangeEvent = Exclude<Schemas['WatchEvent'], { event: 'stream.closed' }>

/** WatchOptions are of one stream of changes. */
export interface WatchOptions {
  signal?: AbortSignal
  /** Goes on after this event. */
  lastEventId?: string
}

/**
 * changes gives the events of a path until the signal ends it, across broken
 * connections: each goes on after the last event that came. Where it can't,
 * `stream.started` says `resumed: false`. It ends with the conversation that it
 * is about, and throws where the server refuses.
 */
export async function* changes(http: HTTP, path: string, { signal, lastEventId }: WatchOptions = {}): AsyncGenerator<ChangeEvent, void, undefined> {
  for (let tries = 0; ; tries++) {
    let before = http.positions
    try {
      const answer = await http.send('GET', path, {
        headers: { Accept: 'text/event-stream', ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }) },
        waits: true, signal,
      })
      for await (const { id, event, data } of serverSentEvents(answer.body!)) {
        if (event === 'stream.closed') throw problemOf(JSON.parse(data) as Schemas['Problem'])
        tries = 0
        if (id !== undefined) lastEventId = id
        const change = { id, event, data: JSON.parse(data) as unknown } as ChangeEvent
        if (change.data.position !== undefined) {
          http.heard(change.data.position, before)
          before = [change.data.position]
        }
        yield change
        if (event === 'conversation.deleted' && path !== '/v1/events') return
      }
    } catch (error) {
      if (signal?.aborted) return
      const passes = error instanceof Problem ? error.status === 429 || error.status >= 502 : !(error instanceof CoppiceError) || error instanceof ConnectionError
      if (!passes) throw error
    }
    await pause(Math.min(250 * 2 ** tries, 15_000) * (0.75 + Math.random() / 4), signal).catch(() => {})
    if (signal?.aborted) return
  }
}
