// Word between tabs of one browser that something of a conversation changed.

export interface Change {
  /** null: the list of conversations alone. */
  conversation: string | null
}

const channel = new BroadcastChannel('coppice')

/** tell lets the other tabs know. */
export const tell = (change: Change) => channel.postMessage(change)

export function onChange(heard: (change: Change) => void) {
  channel.addEventListener('message', event => heard(event.data as Change))
}
