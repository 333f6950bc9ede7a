// The operations that the page uses, by the client of clients/ts, with the content
// of messages in the page's own types.
import type { Schemas, StreamOptions } from '@coppice-chat/client'
import { coppice, key } from './http'
import type {
  Comparison, Context, Conversation, ConversationUpdate, Grafted, HitPage, Message, NewCompaction, Page, Part, Shared,
} from './types'

export const listConversations = (archived: boolean, tag: string, cursor: string | null, limit = 50) =>
  coppice.listConversations({ ...(archived && { archived }), ...(tag && { tag }), ...from(cursor), limit, shapes: true })

/** allConversations are those of a tag, or all, archived ones too. */
export async function* allConversations(tag = '') {
  for (const archived of [false, true]) yield* coppice.listConversations({ archived, ...(tag && { tag }), limit: 200 })
}

const from = (cursor: string | null) => (cursor === null ? {} : { cursor })

export const listTags = () => coppice.listTags()

export const listPresets = () => coppice.listPresets()

export const createConversation = (id: string, more: Pick<ConversationUpdate, 'metadata' | 'settings'> = {}) =>
  coppice.createConversation({ id, ...more })

export const getConversation = (id: string, signal?: AbortSignal) => coppice.getConversation(id, { signal })

/** under are changes on their way, by what they change. */
const under = new Map<string, Promise<unknown>>()

/** change changes something. Changes of the same wait for one another: so the last wish stays, whichever request is faster. */
function change<T>(id: string, request: () => Promise<T>): Promise<T> {
  const mine = (under.get(id) ?? Promise.resolve()).then(request)
  const over = mine.then(() => {}, () => {}).then(() => void (under.get(id) === over && under.delete(id)))
  under.set(id, over)
  return mine
}

export const updateConversation = (id: string, to: ConversationUpdate): Promise<Conversation> =>
  change(id, () => coppice.updateConversation(id, to))

/** deleteConversation is done even if the page goes away meanwhile. */
export const deleteConversation = (id: string) => coppice.deleteConversation(id, { keepalive: true })

/** append stores messages as a path, without asking for an answer. */
export const append = (conversation: string, parent: string | null, messages: Schemas['ChainMessage'][]) =>
  coppice.appendMessages(conversation, { parent_id: parent, messages }) as Promise<{ data: Message[] }>

export const pin = (conversation: string, id: string, pinned: boolean) =>
  change(id, () => coppice.updateMessage(conversation, id, { pinned })) as Promise<Message>

/** explain tells how the settings of a conversation bear on a branch. */
export const explain = (conversation: string, head: string, signal?: AbortSignal) => coppice.explainBranch(conversation, head, { signal })

export const getMessage = (conversation: string, id: string, signal?: AbortSignal) =>
  coppice.getMessage(conversation, id, { signal }) as Promise<Message>

export const newestLeaf = (conversation: string, id: string) => coppice.getNewestLeaf(conversation, id) as Promise<Message>

/** prune deletes a message with all below it, or a summary alone; if asked to, even where the page goes away meanwhile. */
export const prune = (conversation: string, id: string, keepalive = false) => coppice.pruneMessage(conversation, id, { keepalive })

/** removeMessage deletes a message alone, as prune does with all below it. */
export const removeMessage = (conversation: string, id: string, keepalive = false) => coppice.removeMessage(conversation, id, { keepalive })

/** writeGraft gives the text that would bring to a branch what another one came to. */
export const writeGraft = (conversation: string, head: string, from: string, include: Grafted['include'], signal?: AbortSignal) =>
  coppice.writeGraft(conversation, head, { from_head_id: from, include }, { signal })

/** graft appends such a text to a branch. */
export const graft = (conversation: string, head: string, id: string, from: string, include: Grafted['include'], text: string) =>
  coppice.createGraft(conversation, head, { id, from_head_id: from, include, text }) as Promise<Message>

/** fork copies a branch, with all other versions of its messages if asked to. */
export const fork = (conversation: string, message: string, id: string, title: string, siblings: 'none' | 'all') =>
  coppice.forkMessage(conversation, message, { id, title }, { siblings })

export const getTree = (conversation: string, signal?: AbortSignal, preview?: number) =>
  coppice.getTree(conversation, preview === undefined ? undefined : { preview }, { signal })

/** transcript gives the last messages of a branch, oldest first. */
export const transcript = async (conversation: string, head: string, limit: number, signal?: AbortSignal) =>
  await coppice.getTranscript(conversation, head, { limit }, { signal }) as Page<Message>

/** getContext gives what a model reads of a branch, in the model's window or else in the server's. */
export const getContext = (conversation: string, head: string, window: number | undefined, signal?: AbortSignal) =>
  coppice.getContext(conversation, head, { ...(window !== undefined && { max_context_tokens: window }), attachments: 'names' }, { signal }) as Promise<Context>

export const compact = (conversation: string, head: string, wishes: NewCompaction = {}) => coppice.createCompaction(conversation, head, wishes)

export const remake = (conversation: string, summary: string, wishes: { instructions?: string }) => coppice.remakeSummary(conversation, summary, wishes)

export const getSummary = (conversation: string, id: string) => coppice.getSummary(conversation, id)

/** search finds messages, the newest first. */
export const search = async (query: Parameters<typeof coppice.search>[0], cursor: string | null, signal?: AbortSignal) =>
  await coppice.search({ ...query, ...from(cursor), limit: 20 }, { signal }) as HitPage

export const importFile = (file: Blob) => coppice.createImport(file)

export const listModels = () => coppice.listModels()
export const acceptModels = (base_url: string) => coppice.acceptModels({ base_url })

export const health = () => coppice.getHealth()

/** An Ask asks for a reply to a head, or to a message that is appended first. */
export interface Ask {
  /** The answer's id. */
  id: string
  conversation: string
  /** The message to answer, or where the message to send has its place. */
  head: string
  message?: { id: string; role: 'user'; content: string | Part[]; parent_id: string | null }
  /** The head is an answer, and the new one begins with its text. */
  continue?: boolean
  /** The model that answers, the server's default where there is none. */
  model?: string
  temperature?: number
  /** false leaves the active head where it is. */
  move_head?: false
}

/** ask begins a reply. */
export const ask = ({ conversation, head, ...reply }: Ask, options: StreamOptions) => coppice.createReply(conversation, head, reply, options)

/** askSeveral has several models answer at once, and tells the events of all. */
export const askSeveral = (conversation: string, head: string, reply: Pick<Schemas['NewReply'], 'models' | 'temperature'> & Pick<Ask, 'message'>) =>
  coppice.createReplies(conversation, head, reply)

/** annotate rates a message, labels it, or notes something of it. Null takes that away. */
export const annotate = (conversation: string, id: string, change_: Pick<Schemas['MessageUpdate'], 'rating' | 'label' | 'note'>) =>
  change(id, () => coppice.updateMessage(conversation, id, change_)) as Promise<Message>

/** ratings tell how answers of each model were taken. */
export const ratings = () => coppice.getRatings()

/** versions are the children of a message, or the roots, fifty at most. */
export const versions = async (conversation: string, parent: string | null) =>
  (await (parent === null ? coppice.listRoots(conversation, { limit: 50 }) : coppice.listChildren(conversation, parent, { limit: 50 }))).data as Message[]

/** branches are the ends of a conversation's branches, the newest first. */
export const branches = async (conversation: string) => (await coppice.listBranches(conversation, { limit: 50 })).data as Message[]

/** compare gives what two branches have that the other one lacks. */
export const compare = async (conversation: string, left: string, right: string) =>
  await coppice.compareBranches(conversation, { left, right }) as Comparison

/** resume reads a reply that another request began. */
export const resume = (conversation: string, message: string, options: StreamOptions) => coppice.readReply(conversation, message, options)

export const stop = (conversation: string, message: string) => coppice.stopReply(conversation, message)

/** runningReplies gives the replies that run in a conversation, whoever asked for them. */
export const runningReplies = (conversation: string) => coppice.listReplies(conversation).then(list => list.data)

export const listShares = (conversation: string) => coppice.listShares(conversation)

/** newShare makes a link to a branch. Its token is told only now. */
export const newShare = (conversation: string, head: string, share: { summaries: boolean; expires_at?: string }) =>
  coppice.createShare(conversation, head, share)

export const revokeShare = (conversation: string, id: string) => coppice.revokeShare(conversation, id)

/** shared gives a page of what a link shows, the newest messages first. */
export const shared = (token: string, cursor: string | null) => coppice.getShared(token, { ...from(cursor), limit: 50 }) as Promise<Shared>

/** Form is a kind of file that a conversation is written to. */
export type Form = 'jsonl' | 'markdown' | 'messages' | 'sillytavern' | 'llama.cpp'

/** downloadAll saves an export of all conversations as one file, and tells how many it has. */
export async function downloadAll(told: (n: number) => void) {
  const all: Blob[] = []
  for await (const { id } of allConversations()) {
    all.push(await (await coppice.exportConversation(id, { format: 'jsonl' })).blob())
    told(all.length)
  }
  save(new Blob(all), `${new Date().toISOString().slice(0, 10)} Coppice.jsonl`)
}

/** save saves a file. */
function save(file: Blob, name: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

/** download saves an export as a file. */
export async function download(conversation: string, format: Form, head?: string) {
  const query = { format, ...(head && { head_id: head }) }
  if (key.value) { // a link can't send it
    const answer = await coppice.exportConversation(conversation, query)
    const [, encoded, name] = /filename(\*=utf-8'')?[="]*([^"]+)/.exec(answer.headers.get('Content-Disposition') ?? '') ?? []
    return save(await answer.blob(), (encoded && name ? decodeURIComponent(name) : name) ?? '')
  }
  const link = document.createElement('a')
  link.href = `/v1/conversations/${conversation}/export?${new URLSearchParams(query)}`
  link.download = ''
  link.click()
}
