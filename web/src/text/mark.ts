// What a reply's metadata tells of how it ended.
import type { Message } from '../api/types'
import { said } from './content'

export interface Ending {
  kind: 'stopped' | 'failed' | 'cut'
  detail: string
}

interface ReplyNote {
  status?: string
  model?: string
  code?: string
  finish_reason?: string
  reasoning_ms?: number
}

/** reasons says the codes of failed replies in words. */
const reasons: Record<string, string> = {
  answer_too_long: 'it is too long for one message',
  prompt_too_long: 'the branch is too long for the model',
  model_timeout: 'the model took too long',
  model_unavailable: 'the model can’t be reached',
  model_rate_limited: 'the model’s provider takes no more requests for now',
  model_bad_response: 'the model gave no proper answer',
  model_not_authorized: 'the model’s provider refuses the server’s key',
  model_refused: 'the model’s provider refuses the request',
}

const noteOf = (m: Message) => m.metadata['reply'] as ReplyNote | undefined

/** endingOf tells of a reply that didn't come to its end; null of all other messages. */
export function endingOf(m: Message): Ending | null {
  const note = noteOf(m)
  if (note?.finish_reason === 'length') return { kind: 'cut', detail: '' }
  if (note?.status !== 'stopped' && note?.status !== 'failed') return null
  if (note.finish_reason === 'interrupted') return { kind: 'stopped', detail: 'the server stopped' }
  if (note.code === 'model_unavailable' && said(m)) return { kind: note.status, detail: 'the connection to the model broke' }
  return { kind: note.status, detail: reasons[note.code ?? ''] ?? note.code?.replaceAll('_', ' ') ?? '' }
}

/** modelOf is the model that wrote a message, where that is known. */
export function modelOf(m: Message): string | null {
  const source = m.metadata['source'] as { model?: unknown } | undefined // of an import
  const model = noteOf(m)?.model ?? m.metadata['model'] ?? source?.model
  return typeof model === 'string' ? model : null
}

/** thoughtFor is how long the model thought, in milliseconds; null where that isn't known. */
export const thoughtFor = (m: Message): number | null => noteOf(m)?.reasoning_ms ?? null
