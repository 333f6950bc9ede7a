// Requests to the API: one function, which knows the key, tells apart what the
// server refused from a server that isn't there, and reports which of the two
// it was.
import { signal } from '@preact/signals'
import * as positions from './positions'

/** A Problem is an answer that says no: problem details (RFC 9457). */
export class Problem extends Error {
  override name = 'Problem'
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly field?: string,
  ) {
    super(detail)
  }
}

/** Unreachable is a request that got no answer. Whether it took effect isn't known. */
export class Unreachable extends Error {
  override name = 'Unreachable'
  constructor() {
    super('The server doesn’t answer.')
  }
}

/** reachable is false from a request without answer to the next that has one. */
export const reachable = signal(true)

const keyName = 'coppice.key'

/** key is the API key, null where none was needed so far. */
export const key = signal<string | null>(localStorage.getItem(keyName))

/** keyWanted is true while the server waits for a key, or for another one. */
export const keyWanted = signal(false)

/** keyRefused is true from a key that the server didn't take to the next one. */
export const keyRefused = signal(false)

export function setKey(secret: string) {
  localStorage.setItem(keyName, secret)
  positions.forget()
  key.value = secret
  keyWanted.value = keyRefused.value = false
}

/** forgetKey drops the key. The page then asks for one. */
export function forgetKey() {
  localStorage.removeItem(keyName)
  positions.forget()
  key.value = null
  keyRefused.value = false
  keyWanted.value = true
}

export interface Options {
  query?: Record<string, string | number | null | undefined>
  json?: unknown
  body?: BodyInit
  headers?: Record<string, string>
  signal?: AbortSignal
  /** The request goes on when the page goes away. */
  keepalive?: boolean
}

/** send sends a request and gives an answer that is a success. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers }
  if (key.value) headers['Authorization'] = `Bearer ${key.value}`
  const before = positions.held()
  if (method === 'GET' && before.length) headers[positions.header] = before.join(', ')
  let body = options.body
  if (options.json !== undefined) {
    headers['Content-Type'] = 'application/json'
    body = JSON.stringify(options.json)
  }
  let response: Response
  try {
    response = await fetch(path + queryString(options.query), { method, headers, body, signal: options.signal, keepalive: options.keepalive ?? false })
  } catch (error) {
    if (options.signal?.aborted) throw error
    reachable.value = false
    throw new Unreachable()
  }
  reachable.value = true
  positions.heard(response.headers.get(positions.header), before)
  if (!response.ok) throw await problemOf(response)
  return response
}

/** call is send for an answer in JSON; an empty one gives undefined. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options)
  try {
    const text = await response.text()
    return (text ? JSON.parse(text) : undefined) as T
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new Unreachable() // cut off
  }
}

/** under are changes on their way, by what they change. */
const under = new Map<string, Promise<unknown>>()

/** change changes something. Changes of the same wait for one another: so the last wish stays, whichever request is faster. */
export function change<T>(path: string, json: unknown): Promise<T> {
  const mine = (under.get(path) ?? Promise.resolve()).then(() => call<T>('PATCH', path, { json }))
  const over = mine.catch(() => {}).then(() => void (under.get(path) === over && under.delete(path)))
  under.set(path, over)
  return mine
}

async function problemOf(response: Response): Promise<Problem> {
  let p: { code?: string; detail?: string; field?: string } = {}
  try {
    p = (await response.json()) as typeof p
  } catch {
    // a proxy in between has pages of its own
  }
  const code = p.code ?? 'unknown'
  if (p.field === positions.header) positions.forget() // of a database that another one took the place of
  if (code === 'missing_key' || code === 'invalid_key') {
    keyRefused.value = code === 'invalid_key' && key.peek() !== null
    keyWanted.value = true
  }
  return new Problem(response.status, code, p.detail ?? `The server answered ${response.status}.`, p.field)
}

function queryString(query: Options['query'] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
  return given.length ? `?${new URLSearchParams(given.map(([k, v]) => [k, String(v)])).toString()}` : ''
}
