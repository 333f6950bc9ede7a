// Word between tabs of one browser that something of a conversation changed.

export interface Change {
  /** null: the list of conversations alone. */
  conversation: string | null
}

let channel: BroadcastChannel | null = null
const listeners: ((change: Change) => void)[] = []

/** tell lets the other tabs know. */
export const tell = (change: Change) => channel?.postMessage(change)

/** onChange calls heard with each change in another tab. */
export function onChange(heard: (change: Change) => void) {
  listeners.push(heard)
}

/** start listens to the other tabs. */
export function start() {
  channel = new BroadcastChannel('coppice')
  channel.addEventListener('message', event => {
    for (const heard of listeners) heard(event.data as Change)
  })
}
