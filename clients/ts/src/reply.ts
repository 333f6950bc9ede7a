import { ConnectionError, CoppiceError, Problem, problemOf } from './errors.js'
import { serverSentEvents } from './events.js'
import { pause, type HTTP, type StreamOptions } from './http.js'
import type { components } from './openapi.js'

type Schemas = components['schemas']

/** A ReplyEvent is an event of a reply. Its id is what `readReply` takes as `lastEventId`. */
export type ReplyEvent = Exclude<Schemas['ReplyEvent'], { event: 'stream.closed' }>

const last = new Set<string>(['reply.completed', 'reply.stopped', 'reply.failed'])

/** isLast tells whether no event of its reply comes after this one. */
export const isLast = (event: ReplyEvent) => last.has(event.event)

/** The most tries in a row to pick a broken stream up again. */
const mostTries = 8

/**
 * A Reply is an answer on its way. Iterating over it gives its events up to the
 * last one, across broken connections: the server finishes what it began, and
 * the stream goes on after the last event that came. It can be iterated over once.
 */
export class Reply implements AsyncIterable<ReplyEvent> {
  private begun = false

  /** @internal */
  constructor(
    private readonly http: HTTP,
    private readonly conversation: string,
    /** The id that the answer has, or will have. */
    readonly id: string,
    private readonly options: StreamOptions,
    /** Asks for the reply; undefined for one that another request began. */
    private readonly begin: (() => Promise<Response>) | undefined,
    private lastEventId?: string,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<ReplyEvent, void, undefined> {
    if (this.begun) throw new CoppiceError('a reply can be iterated over once; use readReply for another time')
    this.begun = true
    let known = this.begin === undefined
    const { signal, reconnect } = this.options
    for (let tries = 0; ; tries++) {
      let broke: unknown = new ConnectionError('the stream broke off')
      try {
        const answer = await (known ? this.resume() : this.begin!())
        if (answer.status === 204 || !answer.body) return // its last event came before
        known = true
        const before = this.http.positions
        for await (const { id, event, data } of serverSentEvents(answer.body)) {
          if (event === 'stream.closed') throw problemOf(JSON.parse(data) as Schemas['Problem'])
          tries = 0
          if (id !== undefined) this.lastEventId = id
          if (!event.startsWith('reply.')) continue
          const part = { id, event, data: JSON.parse(data) as unknown } as ReplyEvent
          if ('position' in part.data) this.http.heard(part.data.position, before)
          yield part
          if (last.has(event)) return
        }
      } catch (error) {
        if (signal?.aborted) throw signal.reason
        // Asked too often, or while the server or a proxy before it starts anew, it is still to be had.
        const passes = error instanceof Problem ? (known || reconnect) && (error.status === 429 || error.status >= 502) : !(error instanceof CoppiceError) || error instanceof ConnectionError
        if (!passes) throw error
        broke = error instanceof CoppiceError ? error : new ConnectionError('the stream broke off', { cause: error })
      }
      if (reconnect) await reconnect(tries, broke)
      else if (tries >= mostTries) throw broke
      else await pause(Math.min(250 * 2 ** tries, 5000), signal)
    }
  }

  /** message waits for the end, and gives the stored answer. A reply that failed is its problem; of one that was stopped before anything came there is none. */
  async message(): Promise<Schemas['Message'] | null> {
    for await (const { event, data } of this) {
      if (event === 'reply.completed' || event === 'reply.stopped') return data.message
      if (event === 'reply.failed') throw problemOf(data as unknown as Schemas['Problem'])
    }
    return await this.http.call('GET', `/v1/conversations/${this.conversation}/messages/${this.id}`)
  }

  private resume(): Promise<Response> {
    return this.http.send('GET', `/v1/conversations/${this.conversation}/replies/${this.id}/events`, {
      headers: { Accept: 'text/event-stream', ...(this.lastEventId !== undefined && { 'Last-Event-ID': this.lastEventId }) },
      waits: true, signal: this.options.signal,
    })
  }
}
