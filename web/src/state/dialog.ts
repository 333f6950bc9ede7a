// The one dialog that may be open.
import { signal } from '@preact/signals'
import type { Message, Summary } from '../api/types'

export interface Confirm {
  kind: 'confirm'
  title: string
  text: string
  /** What the button says; it does what can't be undone. */
  action: string
  run: () => Promise<void>
}

/** Behind asks where a message goes: below a newer one, here, or nowhere. */
export interface Behind {
  kind: 'behind'
  chosen: (how: 'cancel' | 'there' | 'here') => Promise<void>
}

/** A Comparing is what is shown side by side, or asked for so. */
export type Comparing =
  | { what: 'ask'; message: Message | null } // more answers beside this one, or else to what is about to be sent
  | { what: 'versions'; message: Message }
  | { what: 'branches'; conversation: string; head: string }

/** Graft brings what a branch said to another one, which is chosen where none is named. */
export interface Graft {
  kind: 'graft'
  conversation: string
  from: string
  to?: string
}

export type Dialog = { kind: 'compare'; of: Comparing } | { kind: 'label'; message: Message } | Confirm | Behind | Graft | { kind: 'help' } | { kind: 'settings' } | { kind: 'tags'; conversation: string } | { kind: 'shares'; conversation: string; head: string } | { kind: 'export'; conversation?: string; head?: string } | { kind: 'compact'; again?: Summary } | { kind: 'print'; conversation: string; head: string }

export const dialog = signal<Dialog | null>(null)
