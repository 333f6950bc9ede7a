import type { Schemas } from '@coppice-chat/client'
import type { AppendMessage, ThreadMessageLike } from '@assistant-ui/react'

type Message = Schemas['Message']

/** A StoredNode is a message of the tree. Of those on other branches it may have a preview alone. */
export interface StoredNode {
  id: string
  parentId: string | null
  role: Message['role']
  /** undefined while only the preview is known. */
  message?: Message
  preview?: string
  createdAt: string
  /** Of an answer that is on its way. */
  running?: boolean
}

/**
 * toRepository makes assistant-ui's repository of a tree. Results of tools have no
 * message there: they stand in the calls that they answer, and what was under a
 * result is under the call's message.
 */
export function toRepository(nodes: ReadonlyMap<string, StoredNode>, headId: string | null) {
  const results = new Map<string, Map<string, Message>>() // by the message that calls, and the call
  const shown = (id: string | null): string | null => {
    for (let at = id === null ? undefined : nodes.get(id); at; at = at.parentId === null ? undefined : nodes.get(at.parentId)) {
      if (at.role !== 'tool') return at.id
    }
    return null
  }
  // Of the results of one call on several branches, those of the active branch count.
  const active = new Set<string>()
  for (let at = headId; at !== null; at = nodes.get(at)?.parentId ?? null) active.add(at)
  for (const n of nodes.values()) {
    const caller = n.role === 'tool' && n.message?.tool_call_id ? shown(n.parentId) : null
    if (caller === null) continue
    const of = results.get(caller) ?? new Map<string, Message>()
    if (active.has(n.id) || !of.has(n.message!.tool_call_id!)) of.set(n.message!.tool_call_id!, n.message!)
    results.set(caller, of)
  }
  const items: { message: ThreadMessageLike; parentId: string | null }[] = []
  for (const n of nodes.values()) {
    if (n.role !== 'tool') items.push({ message: toLike(n, results.get(n.id)), parentId: shown(n.parentId) })
  }
  return { items, headId: shown(headId) }
}

function toLike(n: StoredNode, results: Map<string, Message> | undefined): ThreadMessageLike {
  const role = n.role === 'user' || n.role === 'assistant' ? n.role : 'system'
  const like = { id: n.id, role, createdAt: new Date(n.createdAt), metadata: { custom: n.message ? { siblings: n.message.siblings, metadata: n.message.metadata } : {} } } as const
  const content = n.message ? partsOf(n.message, results) : [{ type: 'text' as const, text: n.preview ?? '' }]
  if (role !== 'assistant') return { ...like, content }
  const open = n.message?.tool_calls?.some(call => !results?.has(call.id)) ?? false
  return { ...like, content, status: n.running ? { type: 'running' } : open ? { type: 'requires-action', reason: 'tool-calls' } : { type: 'complete', reason: 'stop' } }
}

type Part = Exclude<ThreadMessageLike['content'], string>[number]

function partsOf(m: Message, results: Map<string, Message> | undefined): Part[] {
  const parts: Part[] = []
  if (m.reasoning) parts.push({ type: 'reasoning', text: m.reasoning })
  if (typeof m.content === 'string') {
    if (m.content) parts.push({ type: 'text', text: m.content })
  } else {
    for (const p of (m.content ?? []) as { text?: string; image_url?: { url: string }; file?: { filename?: string; file_data?: string } }[]) {
      if (p.text !== undefined) parts.push({ type: 'text', text: p.text })
      else if (p.image_url) parts.push({ type: 'image', image: p.image_url.url })
      else if (p.file?.file_data) parts.push({ type: 'file', data: p.file.file_data, mimeType: /^data:([^;,]+)/.exec(p.file.file_data)?.[1] ?? 'application/octet-stream', ...(p.file.filename && { filename: p.file.filename }) })
    }
  }
  if (m.refusal) parts.push({ type: 'text', text: m.refusal })
  for (const call of m.tool_calls ?? []) {
    const result = results?.get(call.id)
    parts.push({
      type: 'tool-call', toolCallId: call.id, toolName: call.function?.name ?? call.custom?.name ?? '', argsText: call.function?.arguments ?? call.custom?.input ?? '',
      ...(result && { result: json(typeof result.content === 'string' ? result.content : JSON.stringify(result.content)) }),
    })
  }
  return parts
}

/** contentOf is what a message of the composer says, as the server takes it. */
export function contentOf({ content, attachments }: AppendMessage): NonNullable<Message['content']> {
  const all = [...content, ...(attachments ?? []).flatMap(a => a.content)]
  const parts: Record<string, unknown>[] = []
  for (const p of all) {
    if (p.type === 'text') parts.push({ type: 'text', text: p.text })
    else if (p.type === 'image') parts.push({ type: 'image_url', image_url: { url: p.image } })
    else if (p.type === 'file') parts.push({ type: 'file', file: { filename: p.filename ?? 'file', file_data: p.data } })
  }
  if (parts.every(p => p['type'] === 'text')) return parts.map(p => p['text']).join('\n')
  return parts as NonNullable<Message['content']>
}

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
