// The server, as the client of clients/ts speaks to it: the key, whether the server
// can be reached, and what an error says to the reader.
import { signal } from '@preact/signals'
import { ConnectionError, Coppice, Problem } from '@coppice-chat/client'

export { Problem }

/** reachable is false from a request without answer to the next that has one. */
export const reachable = signal(true)

const keyName = 'coppice.key'

/** key is the API key, null where none was needed so far. */
export const key = signal<string | null>(localStorage.getItem(keyName))

/** keyWanted is true while the server waits for a key, or for another one. */
export const keyWanted = signal(false)

/** keyRefused is true from a key that the server didn't take to the next one. */
export const keyRefused = signal(false)

/** coppice has neither retries nor a timeout of its own: the page says that the server is gone, and asks for it. */
export const coppice = new Coppice({ maxRetries: 0, timeout: 0, fetch: watched, ...(key.peek() && { apiKey: key.peek()! }) })

/** watched is fetch, which notes whether the server answers, and whether it wants a key. Where readers sign in, it goes there. */
async function watched(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const sent = key.peek()
  let answer: Response
  try {
    answer = await fetch(input, init)
  } catch (error) {
    if (!init?.signal?.aborted) reachable.value = false
    throw error
  }
  reachable.value = true
  // A proxy in between may want a password of its own.
  if (answer.status === 401 && answer.headers.get('Content-Type')?.includes('problem+json')) {
    const login = /form-action="(.+?)"/.exec(answer.headers.get('WWW-Authenticate')!)
    if (login && !sent) location.assign(`${login[1]}?next=${encodeURIComponent(location.pathname + location.search)}`)
    else {
      keyRefused.value = sent !== null
      keyWanted.value = true
    }
  }
  return answer
}

export function setKey(secret: string) {
  localStorage.setItem(keyName, secret)
  coppice.setKey(secret)
  key.value = secret
  keyWanted.value = keyRefused.value = false
}

/**
 * forgetKey drops the key and everything that came by it, also without a key. What is stored
 * goes at once, and what the page shows or remembers goes with its document. The new
 * document asks for a key, or is the one given.
 */
export function forgetKey(next = '/') {
  wipe()
  addEventListener('pagehide', () => { // what is stored until the document goes
    if (localStorage.getItem(keyName) === null) wipe()
  })
  document.body.replaceChildren()
  document.title = 'Coppice'
  location.replace(next)
}

function wipe() {
  localStorage.clear()
  sessionStorage.clear()
}

/** followKey does the same where another tab forgot the key, also in a page that the browser kept for the way back. */
export function followKey() {
  const look = () => {
    const now = localStorage.getItem(keyName)
    if (key.peek() === null || now === key.peek()) return
    if (now === null) forgetKey()
    else location.reload() // by the key of now
  }
  addEventListener('storage', look)
  addEventListener('pageshow', look)
}

/** missing tells an error that says that something isn't there. */
export const missing = (error: unknown) => error instanceof Problem && error.status === 404

/** reason is what an error says to the reader. */
export function reason(error: unknown): string {
  if (error instanceof ConnectionError) return 'The server doesn’t answer.'
  if (error instanceof Problem) return error.code === 'unknown' ? `The server answered ${error.status}.` : error.detail
  return error instanceof Error ? error.message : String(error)
}
