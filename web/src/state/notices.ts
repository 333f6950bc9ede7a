// Notices: short sentences about what happened, at the foot of the page.
import { signal } from '@preact/signals'
import { reason } from '../api/http'

export interface Notice {
  id: number
  text: string
  bad: boolean
  action?: { label: string; run: () => void }
}

export const notices = signal<Notice[]>([])

let last = 0

/** note shows a notice for some seconds, longer where there is something to do. */
export function note(text: string, options: { bad?: boolean; action?: Notice['action']; lasts?: number } = {}) {
  const id = ++last
  notices.value = [...notices.value.slice(-2), { id, text, bad: options.bad ?? false, action: options.action }]
  setTimeout(() => dismiss(id), options.lasts ?? (options.bad || options.action ? 12_000 : 5_000))
  return id
}

export const dismiss = (id: number) => (notices.value = notices.value.filter(n => n.id !== id))

/** failed shows what went wrong, and says what was being tried. */
export const failed = (trying: string) => (error: unknown) => {
  if (error instanceof DOMException && error.name === 'AbortError') return
  note(`${trying}: ${reason(error)}`, { bad: true })
}
