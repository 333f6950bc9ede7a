import type { Schemas } from '@coppice-chat/client'
import type { UIMessage } from 'ai'

type Message = Schemas['Message']
type Part = UIMessage['parts'][number]

/** ChatMetadata is what a message of a chat tells of its place in the tree. */
export interface ChatMetadata {
  /** The first node of the message. Its siblings are the message's versions. */
  nodeId: string
  siblings: { index: number; count: number }
  createdAt: string
  /** The model that answered. */
  model?: string
}

export type ChatMessage = UIMessage<ChatMetadata>

/**
 * toChat makes a chat's messages of a branch. An answer with the calls of tools
 * before it, and their results, is one message; its id is that of its last node.
 */
export function toChat(branch: readonly Message[]): ChatMessage[] {
  const chat: ChatMessage[] = []
  for (const m of branch) {
    const last = chat.at(-1)
    const joins = last?.role === 'assistant' && (m.role === 'assistant' || m.role === 'tool')
    if (m.role === 'tool') {
      for (const part of last?.parts ?? []) settle(part, m)
      if (last) last.id = m.id
    } else if (joins) {
      last.parts.push({ type: 'step-start' }, ...partsOf(m))
      last.id = m.id
    } else {
      const role = m.role === 'user' || m.role === 'assistant' ? m.role : 'system'
      chat.push({ id: m.id, role, parts: partsOf(m), metadata: metadataOf(m) })
    }
  }
  return chat
}

export function metadataOf(m: Message): ChatMetadata {
  const model = (m.metadata as { reply?: { model?: string } }).reply?.model
  return { nodeId: m.id, siblings: m.siblings, createdAt: m.created_at, ...(model !== undefined && { model }) }
}

/** settle puts the result of a call into the call's part. */
function settle(part: Part, result: Message) {
  if ('toolCallId' in part && part.toolCallId === result.tool_call_id) Object.assign(part, { state: 'output-available', output: json(textOf(result)) })
}

function partsOf(m: Message): Part[] {
  const parts: Part[] = []
  if (m.reasoning) parts.push({ type: 'reasoning', text: m.reasoning, state: 'done' })
  if (typeof m.content === 'string') {
    if (m.content) parts.push({ type: 'text', text: m.content, state: 'done' })
  } else {
    for (const p of (m.content ?? []) as { type: string; text?: string; image_url?: { url: string }; file?: { filename?: string; file_data?: string } }[]) {
      if (p.text !== undefined) parts.push({ type: 'text', text: p.text, state: 'done' })
      else if (p.image_url) parts.push({ type: 'file', mediaType: mediaType(p.image_url.url, 'image/*'), url: p.image_url.url })
      else if (p.file?.file_data) parts.push({ type: 'file', mediaType: mediaType(p.file.file_data, 'application/octet-stream'), url: p.file.file_data, ...(p.file.filename && { filename: p.file.filename }) })
    }
  }
  if (m.refusal) parts.push({ type: 'text', text: m.refusal, state: 'done' })
  for (const call of m.tool_calls ?? []) {
    parts.push({ type: `tool-${call.function?.name ?? call.custom?.name ?? ''}`, toolCallId: call.id, state: 'input-available', input: json(call.function?.arguments ?? call.custom?.input ?? '') })
  }
  return parts
}

/** contentOf is what a chat's message says, as the server takes it. */
export function contentOf(message: UIMessage): Schemas['NewMessage']['content'] {
  const parts: object[] = []
  let plain = true
  for (const p of message.parts) {
    if (p.type === 'text') parts.push({ type: 'text', text: p.text })
    if (p.type !== 'file') continue
    plain = false
    parts.push(p.mediaType.startsWith('image/') ? { type: 'image_url', image_url: { url: p.url } } : { type: 'file', file: { filename: p.filename ?? 'file', file_data: p.url } })
  }
  const text = parts.map(p => (p as { text?: string }).text ?? '').join('')
  return plain ? text : (parts as NonNullable<Schemas['NewMessage']['content']>)
}

/** results are those of the calls at the end of an answer, as messages. */
export function results(message: UIMessage): Schemas['ChainMessage'][] {
  const since = message.parts.findLastIndex(p => p.type === 'step-start') + 1
  return message.parts.slice(since).flatMap(p => {
    if (!('toolCallId' in p) || p.providerExecuted) return []
    if (p.state === 'output-available') return [{ role: 'tool' as const, tool_call_id: p.toolCallId, content: typeof p.output === 'string' ? p.output : JSON.stringify(p.output ?? null) }]
    if (p.state === 'output-error') return [{ role: 'tool' as const, tool_call_id: p.toolCallId, content: p.errorText }]
    return []
  })
}

export function textOf(m: Message): string {
  return typeof m.content === 'string' ? m.content : ((m.content ?? []) as { text?: string }[]).map(p => p.text ?? '').join('')
}

/** json is the value of a JSON text, or the text where it is none. */
export function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const mediaType = (url: string, other: string) => /^data:([^;,]+)/.exec(url)?.[1] ?? other
