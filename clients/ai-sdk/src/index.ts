/**
 * A transport for the AI SDK's `useChat`: the chat is a conversation of Coppice,
 * an edit is a branch, a regeneration is a sibling, and an answer goes on where
 * it was when the page is loaded anew.
 *
 *     const transport = new CoppiceTransport({ client: new Coppice() })
 *     const chat = useChat({ id: uuidv7(), transport, resume: true })
 */
import { NotFound, Problem, uuidv7, type Coppice, type Reply, type Schemas } from '@coppice-chat/client'
import type { ChatTransport, UIMessageChunk } from 'ai'
import { Chunks } from './chunks.js'
import { contentOf, results, toChat, type ChatMessage } from './messages.js'

export { toChat, type ChatMessage, type ChatMetadata } from './messages.js'

type Ask = Omit<Schemas['NewReply'], 'stream' | 'id' | 'message' | 'messages' | 'parent_id' | 'move_head'>

export interface TransportOptions {
  client: Coppice
  /** What each request asks for beside its message: `model`, `tools`, `instructions`, `recall` and so on. `body` of a request adds to it. */
  ask?: Ask
  /** Where the replies on their way are noted, so that `resume` finds them. The page's sessionStorage unless said. */
  storage?: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A CoppiceTransport is for any number of chats. The id of a chat is that of its conversation, a UUID. */
export class CoppiceTransport implements ChatTransport<ChatMessage> {
  readonly resumeStreamIsReplay = true
  private readonly client: Coppice
  private readonly storage: TransportOptions['storage']
  /** The nodes in which messages end, of messages that have other ids. */
  private readonly nodes = new Map<string, string>()
  private readonly loaded = new Set<string>()

  constructor(private readonly options: TransportOptions) {
    this.client = options.client
    this.storage = options.storage ?? (globalThis as { sessionStorage?: Storage }).sessionStorage
  }

  /** load gives the messages of a chat's active branch, none where there is no such conversation yet. */
  async load(chatId: string): Promise<ChatMessage[]> {
    const branch: Schemas['Message'][] = []
    try {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page: { data: Schemas['Message'][]; next_cursor: string | null } = await this.client.getTranscript(chatId, 'active', { limit: 1000, ...(cursor !== undefined && { cursor }) })
        branch.unshift(...page.data)
        cursor = page.next_cursor
      }
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
    }
    for (const m of branch) {
      this.loaded.add(m.id)
      this.nodes.delete(m.id) // it may have stood for its edit
    }
    return toChat(branch)
  }

  /** versions lists the first nodes of a message and of its siblings, oldest first. */
  async versions(chatId: string, message: ChatMessage): Promise<string[]> {
    const { parent_id } = await this.client.getMessage(chatId, this.firstNode(message))
    const ids: string[] = []
    for await (const m of parent_id === null ? this.client.listRoots(chatId) : this.client.listChildren(chatId, parent_id)) ids.push(m.id)
    return ids
  }

  /** switchTo makes the branch through a version the active one, where it was left off, and gives its messages. */
  async switchTo(chatId: string, version: string): Promise<ChatMessage[]> {
    const leaf = await this.client.getNewestLeaf(chatId, version)
    await this.client.updateConversation(chatId, { head_id: leaf.id })
    return this.load(chatId)
  }

  async sendMessages({ trigger, chatId, messageId, messages, abortSignal, body }: Parameters<ChatTransport<ChatMessage>['sendMessages']>[0]): Promise<ReadableStream<UIMessageChunk>> {
    if (!uuid.test(chatId)) throw new TypeError(`The chat's id must be a UUID, as it is that of the conversation; "${chatId}" is none. Pass useChat an id made by uuidv7().`)
    const last = messages.at(-1)
    if (!last) throw new TypeError('There is no message to answer.')
    const before = messages.at(-2)
    const ask: Schemas['NewReply'] = { ...this.options.ask, ...(body as Ask | undefined) }
    const goesOn = last.role === 'assistant'
    let head = 'active'
    if (goesOn) {
      ask.messages = results(last)
      head = this.node(last.id)
    } else if (trigger === 'regenerate-message') {
      head = this.node(last.id)
    } else {
      // An edit is another node in the same place.
      if (messageId !== undefined || !uuid.test(last.id)) this.nodes.set(last.id, uuidv7())
      ask.message = { id: this.node(last.id), role: 'user', content: contentOf(last) ?? '', parent_id: before ? this.node(before.id) : null }
    }
    const id = uuidv7()
    if (ask.message && !before && messageId === undefined) await this.ensure(chatId)
    if (goesOn) this.nodes.set(last.id, id)
    this.storage?.setItem(key(chatId), id)
    return this.stream(chatId, this.client.createReply(chatId, head, { ...ask, id }), goesOn, abortSignal)
  }

  async reconnectToStream({ chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal }): Promise<ReadableStream<UIMessageChunk> | null> {
    const id = this.storage?.getItem(key(chatId))
    if (!id) return null
    if (this.loaded.has(id)) {
      this.storage?.removeItem(key(chatId))
      return null
    }
    return this.stream(chatId, this.client.readReply(chatId, id), false, abortSignal, true)
  }

  /** ensure makes the conversation of a chat that is new. */
  private async ensure(chatId: string) {
    try {
      await this.client.getConversation(chatId)
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
      await this.client.createConversation({ id: chatId })
    }
  }

  private stream(chatId: string, reply: Reply, goesOn: boolean, signal: AbortSignal | undefined, resumes = false): ReadableStream<UIMessageChunk> {
    const chunks = new Chunks(goesOn)
    const events = reply[Symbol.asyncIterator]()
    const forget = () => {
      if (this.storage?.getItem(key(chatId)) === reply.id) this.storage.removeItem(key(chatId))
    }
    const stop = () => void this.client.stopReply(chatId, reply.id).catch(() => {}) // it may have ended
    return new ReadableStream<UIMessageChunk>({
      start: () => (signal?.aborted ? stop() : signal?.addEventListener('abort', stop, { once: true })),
      pull: async controller => {
        try {
          for (let sent = false; !sent; ) {
            const { done, value } = await events.next()
            if (done) {
              forget()
              signal?.removeEventListener('abort', stop)
              return controller.close()
            }
            for (const chunk of chunks.of(value)) {
              controller.enqueue(chunk)
              sent = true
            }
          }
        } catch (error) {
          if (refused(error)) forget()
          if (resumes && error instanceof NotFound) controller.close() // it left nothing
          else controller.error(error)
        }
      },
      cancel: () => void events.return?.(undefined),
    })
  }

  private node(id: string): string {
    return this.nodes.get(id) ?? id
  }

  private firstNode(message: ChatMessage): string {
    return message.metadata?.nodeId ?? this.node(message.id)
  }
}

/** refused tells whether asking again would give the same error. */
const refused = (error: unknown) => error instanceof Problem && error.status < 500 && error.status !== 429

const key = (chatId: string) => `coppice-reply-${chatId}`
