// Where the page is: /, /c/{conversation} or /c/{conversation}/{head}.
import { signal } from '@preact/signals'

export interface Place {
  conversation: string | null
  head: string | null
}

function read(): Place {
  const [, c, conversation, head] = location.pathname.split('/')
  return c === 'c' && conversation ? { conversation, head: head || null } : { conversation: null, head: null }
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
  if (to.conversation !== place.value.conversation || to.head !== place.value.head) place.value = to
}
