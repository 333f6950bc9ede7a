// The one dialog that may be open.
import { signal } from '@preact/signals'

export interface Confirm {
  kind: 'confirm'
  title: string
  text: string
  /** What the button says; it does what can't be undone. */
  action: string
  run: () => Promise<void>
}

export type Dialog = Confirm | { kind: 'help' } | { kind: 'shares'; conversation: string; head: string }

export const dialog = signal<Dialog | null>(null)
