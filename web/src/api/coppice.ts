// The API's operations, each as a function.
import { call, change, key, send } from './http'
import type {
  Compaction, Context, Conversation, ConversationUpdate, Explanation, HitPage, ImportReport, Message, Model, Page, Part, Preset, Pruned, Share, Shared, Summary, TagCount, Tree,
} from './types'

const of = (conversation: string) => `/v1/conversations/${conversation}`

export const listConversations = (archived: boolean, tag: string, cursor: string | null, limit = 50) =>
  call<Page<Conversation>>('GET', '/v1/conversations', { query: { archived: archived ? 'true' : null, tag: tag || null, cursor, limit } })

export const listTags = () => call<Page<TagCount>>('GET', '/v1/tags')

export const listPresets = () => call<Page<Preset>>('GET', '/v1/presets')

export const createConversation = (id: string, more: Pick<ConversationUpdate, 'metadata' | 'settings'> = {}) =>
  call<Conversation>('POST', '/v1/conversations', { json: { id, ...more } })

export const getConversation = (id: string, signal?: AbortSignal) => call<Conversation>('GET', of(id), { signal })

export const updateConversation = (id: string, to: ConversationUpdate) => change<Conversation>(of(id), to)

/** deleteConversation is done even if the page goes away meanwhile. */
export const deleteConversation = (id: string) => call<void>('DELETE', of(id), { keepalive: true })

/** append stores messages as a path, without asking for an answer. */
export const append = (conversation: string, parent: string | null, messages: object[]) =>
  call<{ data: Message[] }>('POST', `${of(conversation)}/messages`, { json: { parent_id: parent, messages } })

export const pin = (conversation: string, id: string, pinned: boolean) =>
  change<Message>(`${of(conversation)}/messages/${id}`, { pinned })

/** explain tells how the settings of a conversation bear on a branch. */
export const explain = (conversation: string, head: string, signal?: AbortSignal) =>
  call<Explanation>('GET', `${of(conversation)}/branches/${head}/explain`, { signal })

export const getMessage = (conversation: string, id: string, signal?: AbortSignal) =>
  call<Message>('GET', `${of(conversation)}/messages/${id}`, { signal })

export const newestLeaf = (conversation: string, id: string) =>
  call<Message>('GET', `${of(conversation)}/messages/${id}/newest-leaf`)

/** prune deletes a message with all below it, or a summary alone. */
export const prune = (conversation: string, id: string) => call<Pruned>('DELETE', `${of(conversation)}/messages/${id}`)

export const fork = (conversation: string, message: string, id: string, title: string) =>
  call<Conversation>('POST', `${of(conversation)}/messages/${message}/fork`, { json: { id, title } })

export const getTree = (conversation: string, signal?: AbortSignal, preview?: number) =>
  call<Tree>('GET', `${of(conversation)}/tree`, { query: { preview: preview ?? null }, signal })

/** transcript gives the last messages of a branch, oldest first. */
export const transcript = (conversation: string, head: string, limit: number, signal?: AbortSignal) =>
  call<Page<Message>>('GET', `${of(conversation)}/branches/${head}/transcript`, { query: { limit }, signal })

/** getContext gives what a model reads of a branch, in the model's window or else in the server's. */
export const getContext = (conversation: string, head: string, window: number | undefined, signal?: AbortSignal) =>
  call<Context>('GET', `${of(conversation)}/branches/${head}/context`, { query: { max_context_tokens: window ?? null, attachments: 'names' }, signal })

export const compact = (conversation: string, head: string) =>
  call<Compaction>('POST', `${of(conversation)}/branches/${head}/compactions`, { json: {} })

export const getSummary = (conversation: string, id: string) => call<Summary>('GET', `${of(conversation)}/summaries/${id}`)

export const search = (query: string, cursor: string | null, signal?: AbortSignal) =>
  call<HitPage>('GET', '/v1/search', { query: { query, cursor, limit: 20 }, signal })

export const importFile = (file: Blob) =>
  call<ImportReport>('POST', '/v1/imports', { body: file, headers: { 'Content-Type': 'application/octet-stream' } })

export const listModels = () => call<Page<Model>>('GET', '/v1/models')

export const health = () => call<{ version: string }>('GET', '/healthz')

/** An Ask asks for a reply to a head, or to a message that is appended first. */
export interface Ask {
  /** The answer's id. */
  id: string
  conversation: string
  /** The message to answer, or where the message to send has its place. */
  head: string
  message?: { id: string; role: 'user'; content: string | Part[]; parent_id: string | null }
  /** The model that answers, the server's default where there is none. */
  model?: string
  temperature?: number
}

/** ask begins a reply: a stream of server-sent events. */
export const ask = (a: Ask, signal: AbortSignal) =>
  send('POST', `${of(a.conversation)}/branches/${a.head}/replies`, {
    json: { id: a.id, message: a.message, model: a.model, temperature: a.temperature, stream: true }, headers: { Accept: 'text/event-stream' }, signal,
  })

/** resume picks a reply's stream up after the last event that came. */
export const resume = (conversation: string, message: string, lastEvent: string | null, signal: AbortSignal) =>
  send('GET', `${of(conversation)}/replies/${message}/events`, {
    headers: { Accept: 'text/event-stream', ...(lastEvent !== null && { 'Last-Event-ID': lastEvent }) }, signal,
  })

export const stop = (conversation: string, message: string) => call<unknown>('DELETE', `${of(conversation)}/replies/${message}`)

export const listShares = (conversation: string) => call<Page<Share>>('GET', `${of(conversation)}/shares`)

/** newShare makes a link to a branch. Its token is told only now. */
export const newShare = (conversation: string, head: string, share: { summaries: boolean; expires_at?: string }) =>
  call<Share & { token: string }>('POST', `${of(conversation)}/branches/${head}/shares`, { json: share })

export const revokeShare = (conversation: string, id: string) => call<void>('DELETE', `${of(conversation)}/shares/${id}`)

/** shared gives a page of what a link shows, the newest messages first. */
export const shared = (token: string, cursor: string | null) =>
  call<Shared>('GET', `/v1/shared/${encodeURIComponent(token)}`, { query: { cursor, limit: 50 } })

/** download saves an export as a file. */
export async function download(conversation: string, format: 'jsonl' | 'markdown', head?: string) {
  const query = new URLSearchParams({ format, ...(head && { head_id: head }) })
  const link = document.createElement('a')
  link.href = `${of(conversation)}/export?${query}`
  link.download = ''
  if (key.value) { // a link can't send it
    const answer = await send('GET', link.href)
    link.download = `${conversation}.${format === 'jsonl' ? 'jsonl' : 'md'}`
    link.href = URL.createObjectURL(await answer.blob())
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
  }
  link.click()
}
