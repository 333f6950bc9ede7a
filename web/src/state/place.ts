// Where the page is: /, /c/{conversation} or /c/{conversation}/{head}. At any other
// address there is nothing, and the page is lost.
import { signal } from '@preact/signals'

export interface Place {
  conversation: string | null
  head: string | null
  lost?: boolean
}

function read(): Place {
  const [, c, conversation, head, more] = location.pathname.split('/')
  if (c === 'c' && conversation && more === undefined) return { conversation, head: head || null }
  return { conversation: null, head: null, lost: location.pathname !== '/' }
}

export const pathOf = (p: Place) => (p.conversation ? `/c/${p.conversation}` + (p.head ? `/${p.head}` : '') : '/')

export const place = signal<Place>(read())

/** start follows the browser's history. */
export function start() {
  addEventListener('popstate', () => (place.value = read()))
}

/** go moves to a place, as a new entry of the browser's history or in its present one. */
export function go(to: Place, how: 'push' | 'replace' = 'push') {
  const path = pathOf(to)
  if (path !== location.pathname) {
    if (how === 'push') history.pushState(null, '', path)
    else history.replaceState(null, '', path)
  }
  const { conversation, head, lost } = place.value
  if (to.conversation !== conversation || to.head !== head || lost) place.value = to
}
