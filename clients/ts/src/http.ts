import { ConnectionError, CoppiceError, problemOf, TimeoutError, type Problem } from './errors.js'
import type { components } from './openapi.js'

/** Options say where a server is, and how to call it. */
export interface Options {
  /** The server's address, such as `http://127.0.0.1:8787`. In a page that the server, or a proxy before it, delivers it may be left out. */
  baseURL?: string
  /** A key of the server, where it wants one. A page shows its key to whoever opens it. */
  apiKey?: string
  /** Sent with every request. */
  headers?: Record<string, string>
  /** Milliseconds that an answer may take, 60,000 by default; 0 is no limit. Streams, and requests that wait for a model, have no limit. */
  timeout?: number
  /** How often a request that fails in passing is sent again, 2 unless said. */
  maxRetries?: number
  /** In place of the global fetch. */
  fetch?: typeof fetch
}

/** CallOptions are of one call. */
export interface CallOptions {
  /** Ends the call. It doesn't end a reply: see `stopReply`. */
  signal?: AbortSignal | undefined
  /** The request goes on when the page goes away. */
  keepalive?: boolean
}

/** StreamOptions are of a reply's stream. */
export interface StreamOptions extends CallOptions {
  /**
   * Called when the stream broke. It resolves when the stream should be read on, and throws to give up. Without it the
   * client waits longer from attempt to attempt, and gives up after eight in a row. `attempt` counts from 0.
   */
  reconnect?: (attempt: number, cause: unknown) => Promise<void>
}

export interface Call extends CallOptions {
  query?: object
  json?: unknown
  body?: BodyInit
  headers?: Record<string, string>
  /** It may be sent again without doing anything twice. */
  repeatable?: boolean
  /** It waits for a model, so it has no timeout. */
  waits?: boolean
}

/** The longest pause between two tries, in milliseconds. */
const longestPause = 8000

const positionHeader = 'Coppice-Position'

/** The most positions that are kept. */
const mostPositions = 16

/** An HTTP sends requests, and sends those again that failed in passing. */
export class HTTP {
  private readonly base: string
  private readonly options: Options
  private apiKey: string | null | undefined

  /** How far the server's database was after what this client wrote, or was told of. A server that reads from a replica then shows as much. */
  positions: readonly string[] = []

  constructor(options: Options) {
    this.options = options
    this.apiKey = options.apiKey
    this.base = (options.baseURL ?? '').replace(/\/+$/, '')
  }

  /** setKey changes the key. Positions are of the tenant of the key before. */
  setKey(apiKey: string | null) {
    this.apiKey = apiKey
    this.positions = []
  }

  /** heard keeps a position, in place of those that were kept when its request was sent, or that came before it in its stream. */
  heard(position: string | null | undefined, before: readonly string[]) {
    if (position) this.positions = [...this.positions.filter(p => !before.includes(p)), position].slice(-mostPositions)
  }

  /** call gives the JSON of an answer, undefined where it has none. */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const answer = await this.send(method, path, call)
    try {
      return (answer.status === 204 ? undefined : await answer.json()) as T
    } catch (cause) {
      throw failure(cause, call.signal)
    }
  }

  /** send gives an answer of a 2xx status, its body unread. */
  async send(method: string, path: string, call: Call = {}): Promise<Response> {
    const again = call.repeatable ?? method !== 'POST'
    for (let left = this.options.maxRetries ?? 2, tries = 0; ; left--, tries++) {
      try {
        return await this.once(method, path, call)
      } catch (error) {
        if (left <= 0 || call.signal?.aborted || !passes(error, again)) throw error
        await pause((error as Problem).retryAfter ?? Math.min(500 * 2 ** tries, longestPause) * (0.75 + Math.random() / 4), call.signal)
      }
    }
  }

  private async once(method: string, path: string, { query, json, body, headers, signal, keepalive, waits }: Call): Promise<Response> {
    const url = this.base + path + search(query)
    const limit = waits ? 0 : (this.options.timeout ?? 60_000)
    const timeout = limit ? AbortSignal.timeout(limit) : undefined
    const ends = signal && timeout ? AbortSignal.any([signal, timeout]) : (signal ?? timeout)
    const before = this.positions
    let answer: Response
    try {
      answer = await (this.options.fetch ?? fetch)(url, {
        method,
        headers: {
          Accept: 'application/json',
          ...(json !== undefined && { 'Content-Type': 'application/json' }),
          ...(this.apiKey && { Authorization: `Bearer ${this.apiKey}` }),
          ...(method === 'GET' && before.length > 0 && { [positionHeader]: before.join(', ') }),
          ...this.options.headers,
          ...headers,
        },
        body: json === undefined ? (body ?? null) : JSON.stringify(json),
        ...(ends && { signal: ends }),
        ...(keepalive && { keepalive }),
        ...(body instanceof ReadableStream && { duplex: 'half' }), // which fetch insists on
      })
    } catch (cause) {
      throw timeout?.aborted && !signal?.aborted ? new TimeoutError(`${method} ${path} took too long`, { cause }) : failure(cause, signal)
    }
    this.heard(answer.headers.get(positionHeader), before)
    if (answer.ok) return answer
    const problem = await refusal(answer)
    if (problem.field === positionHeader) this.positions = [] // of a database that another one took the place of
    throw problem
  }
}

/** refusal is the error that an answer of another status stands for. */
async function refusal(answer: Response): Promise<Problem> {
  const text = await answer.text().catch(() => '')
  try {
    const problem = JSON.parse(text) as components['schemas']['Problem']
    if (typeof problem.code === 'string') return problemOf(problem, answer.headers)
  } catch {
    // It isn't Coppice's: a proxy's, say.
  }
  return problemOf({ type: 'about:blank', title: answer.statusText, status: answer.status, code: 'unknown', detail: text.slice(0, 200) || answer.statusText }, answer.headers)
}

/** failure is the error of a call without a whole answer. The caller's own end stays as it is. */
function failure(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason
  return cause instanceof CoppiceError ? cause : new ConnectionError(`the server can't be reached: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
}

/** passes tells whether a later try may go better. A request that may not be repeated is, where the server says that it did nothing. */
function passes(error: unknown, again: boolean): boolean {
  if (error instanceof ConnectionError) return again
  const { status } = error as Problem
  return status === 429 || (again && (status === 502 || status === 503 || status === 504))
}

/** pause waits some milliseconds, or until the signal ends it. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const ended = () => {
      clearTimeout(timer)
      fail(signal!.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', ended)
      done()
    }, milliseconds)
    if (signal?.aborted) ended()
    else signal?.addEventListener('abort', ended, { once: true })
  })
}

function search(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null)
  return given.length ? '?' + new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString() : ''
}
