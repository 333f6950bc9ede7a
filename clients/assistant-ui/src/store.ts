import { NotFound, Problem, uuidv7, type Coppice, type Reply, type Schemas } from '@coppice-chat/client'
import type { StoredNode } from './convert.js'
import { inTurn } from './turns.js'

type Message = Schemas['Message']

/** What each reply is asked for beside its message: `model`, `tools`, `instructions`, `recall` and so on. */
export type Ask = Omit<Schemas['NewReply'], 'stream' | 'id' | 'message' | 'messages' | 'parent_id' | 'move_head'>

export interface Snapshot {
  readonly threads: readonly Schemas['Conversation'][]
  /** undefined for a thread that has no message yet. */
  readonly threadId: string | undefined
  readonly nodes: ReadonlyMap<string, StoredNode>
  readonly headId: string | null
  readonly running: boolean
  readonly loading: boolean
}

const none: Snapshot = { threads: [], threadId: undefined, nodes: new Map(), headId: null, running: false, loading: false }

/** A Threads is the state of a chat: the list of conversations, and one of them as a tree. */
export class Threads {
  private state = none
  private readonly listeners = new Set<() => void>()
  private reply: { thread: string; id: string; abort: AbortController } | undefined
  private titling: AbortController | undefined
  /** Ends what is read of a thread when another one is shown. */
  private shown = new AbortController()
  /** What is to be done of the thread that is shown: its head is to be moved, its tree to be read. */
  private wish: string | undefined
  private due = false
  private results: { caller: string; messages: Schemas['ChainMessage'][] } | undefined

  constructor(
    private readonly client: Coppice,
    private readonly ask: () => Ask,
    private readonly failed: (error: unknown) => void,
    private readonly storage = (globalThis as { sessionStorage?: Storage }).sessionStorage,
  ) {}

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  readonly snapshot = () => this.state

  private set(change: Partial<Snapshot>) {
    this.state = { ...this.state, ...change }
    for (const listener of this.listeners) listener()
  }

  readonly list = inTurn(async () => this.set({ threads: (await this.client.listConversations({ limit: 100 })).data }))

  /** open shows a conversation, or an empty thread, and goes on with the reply that was on its way there. */
  async open(threadId: string | undefined) {
    this.reply?.abort.abort() // it goes on at the server
    this.reply = undefined
    this.titling?.abort()
    this.shown.abort()
    this.shown = new AbortController()
    this.wish = undefined
    this.due = false
    this.set({ threadId, nodes: new Map(), headId: null, running: false, loading: threadId !== undefined })
    if (threadId === undefined) return
    const { signal } = this.shown
    await this.load()
    const id = this.storage?.getItem(key(threadId))
    if (id && !signal.aborted && !this.state.nodes.has(id)) void this.follow(this.client.readReply(threadId, id, { signal: this.begin(threadId, id) }), true)
  }

  /** load reads the tree, and what was said on its active branch. */
  async load() {
    this.due = true
    await this.catchUp()
  }

  /** show makes another branch the active one. */
  async show(uiHead: string | null) {
    if (uiHead === null) return
    this.wish = this.end(uiHead)
    await this.catchUp()
  }

  /** catchUp does what is to be done, one thing after the other: the branch that was wished for last is shown. */
  private readonly catchUp = inTurn(async () => {
    const { threadId } = this.state
    const { wish, due } = this
    const { signal } = this.shown
    this.wish = undefined
    this.due = false
    if (threadId === undefined) return
    try {
      if (wish !== undefined) await this.client.updateConversation(threadId, { head_id: wish }, { signal })
      if (due) await this.read(threadId, signal)
      else if (wish !== undefined) {
        const said = await this.branch(threadId, wish, this.state.nodes, signal)
        signal.throwIfAborted()
        this.set({ nodes: new Map([...this.state.nodes, ...said]), headId: wish })
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  })

  /** read shows the tree as it is stored. Of a reply on its way, what isn't stored yet stays. */
  private async read(threadId: string, signal: AbortSignal) {
    const tree = await this.client.getTree(threadId, { preview: 200 }, { signal })
    const nodes = new Map<string, StoredNode>()
    for (const n of tree.data) {
      if (n.kind !== 'message') continue
      const known = this.state.nodes.get(n.id)?.message
      nodes.set(n.id, { id: n.id, parentId: n.parent_id, role: n.role, createdAt: n.created_at, ...(n.preview !== undefined && { preview: n.preview }), ...(known?.conversation_id && { message: known }) })
    }
    for (const [id, node] of await this.branch(threadId, tree.head_id, nodes, signal)) nodes.set(id, node)
    signal.throwIfAborted()
    if (!this.reply) return this.set({ nodes, headId: tree.head_id, loading: false })
    for (const n of this.state.nodes.values()) if (!nodes.has(n.id) && n.message?.conversation_id === '') nodes.set(n.id, n)
    this.set({ nodes, loading: false })
  }

  /** branch reads what was said on a branch, from its head up to the first message that is known. */
  private async branch(threadId: string, headId: string | null, known: ReadonlyMap<string, StoredNode>, signal: AbortSignal) {
    const said = new Map<string, StoredNode>()
    for (let at = headId; at !== null && !known.get(at)?.message; ) {
      const page = await this.client.getTranscript(threadId, at, { limit: 1000 }, { signal })
      for (const m of page.data) said.set(m.id, stored(m))
      at = page.data[0]?.parent_id ?? null
    }
    return said
  }

  /** send appends a user's message under a parent and has it answered; edits pass the edited message's parent. */
  async send(parentId: string | null, content: NonNullable<Message['content']>) {
    let { threadId } = this.state
    if (threadId === undefined) {
      const made = await this.client.createConversation({})
      threadId = made.id
      this.set({ threadId, threads: [made, ...this.state.threads] })
      void this.titles(threadId)
    }
    const message = { id: uuidv7(), role: 'user' as const, content, parent_id: parentId }
    this.add({ id: message.id, parentId, role: 'user', createdAt: new Date().toISOString(), message: draft(message.id, parentId, 'user', content) })
    await this.answer(threadId, 'active', { message })
  }

  /** titles shows the titles that the server gives a new conversation, as long as it is open. */
  private async titles(threadId: string) {
    const { signal } = (this.titling = new AbortController())
    try {
      for await (const { event } of this.client.watchConversation(threadId, { signal })) {
        if (event !== 'stream.started' && event !== 'conversation.updated') continue
        await this.list()
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof NotFound)) this.failed(error) // one that is deleted needs no title
    }
  }

  /** say appends a message that nobody is to answer, such as an assistant's that was edited. */
  async say(parentId: string | null, role: Message['role'], content: NonNullable<Message['content']>) {
    const { threadId } = this.state
    if (threadId === undefined) return
    await this.client.appendMessage(threadId, { parent_id: parentId, role, content })
    await this.load()
  }

  /** regenerate has a message answered once more. */
  async regenerate(headId: string) {
    if (this.state.threadId !== undefined) await this.answer(this.state.threadId, headId, {})
  }

  /** result keeps the result of a tool; when all calls of the message have theirs, the answer goes on. */
  async result(caller: string, callId: string, result: unknown) {
    const { threadId, nodes } = this.state
    if (threadId === undefined) return
    if (this.results?.caller !== caller) this.results = { caller, messages: [] }
    const { messages } = this.results
    messages.push({ role: 'tool', tool_call_id: callId, content: typeof result === 'string' ? result : JSON.stringify(result ?? null) })
    if (nodes.get(caller)?.message?.tool_calls?.some(call => !messages.some(m => m.tool_call_id === call.id))) return
    this.results = undefined
    await this.answer(threadId, caller, { messages })
  }

  async stop() {
    if (this.reply) await this.client.stopReply(this.reply.thread, this.reply.id)
  }

  async prune(id: string) {
    const { threadId } = this.state
    if (threadId === undefined) return
    await this.client.pruneMessage(threadId, id)
    await this.load()
  }

  async rename(threadId: string, title: string) {
    const changed = await this.client.updateConversation(threadId, { title })
    this.set({ threads: this.state.threads.map(t => (t.id === threadId ? changed : t)) })
    await this.list() // what is on its way may be older
  }

  async delete(threadId: string) {
    await this.client.deleteConversation(threadId)
    this.set({ threads: this.state.threads.filter(t => t.id !== threadId) })
    if (this.state.threadId === threadId) await this.open(undefined)
    await this.list() // what is on its way may be older
  }

  /** end is the node in which a message ends: the last result of its calls on the active branch, or itself. */
  end(id: string): string {
    const { nodes, headId } = this.state
    let last: string | undefined
    for (let at = headId; at !== null && at !== id; at = nodes.get(at)?.parentId ?? null) {
      last = nodes.get(at)?.role === 'tool' ? (last ?? at) : undefined
    }
    return last ?? id
  }

  private add(node: StoredNode) {
    this.set({ nodes: new Map(this.state.nodes).set(node.id, node), headId: node.id })
  }

  private async answer(threadId: string, head: string, ask: Schemas['NewReply']) {
    const id = uuidv7()
    const signal = this.begin(threadId, id)
    await this.follow(this.client.createReply(threadId, head, { ...this.ask(), ...ask, id }, { signal }))
  }

  private begin(thread: string, id: string): AbortSignal {
    const abort = new AbortController()
    this.reply = { thread, id, abort }
    this.storage?.setItem(key(thread), id)
    this.set({ running: true })
    return abort.signal
  }

  /** follow shows a reply as it comes, and then what is stored of it. */
  private async follow(reply: Reply, resumes = false) {
    const mine = this.reply!
    let node: StoredNode | undefined
    let due = false
    const show = () => {
      due = false
      if (node && this.reply === mine) this.add(node)
    }
    try {
      for await (const { event, data } of reply) {
        if (this.reply !== mine) return
        if (event === 'reply.started') {
          const nodes = new Map(this.state.nodes)
          for (const m of data.messages ?? (data.message ? [data.message] : [])) nodes.set(m.id, stored(m))
          this.set({ nodes })
          node = { id: data.message_id, parentId: data.parent_id, role: 'assistant', createdAt: new Date().toISOString(), running: true, message: draft(data.message_id, data.parent_id, 'assistant', '') }
          show()
        } else if (event === 'reply.message' && node) {
          node = { ...node, parentId: data.message.id }
          this.set({ nodes: new Map(this.state.nodes).set(data.message.id, stored(data.message)) })
        } else if ((event === 'reply.delta' || event === 'reply.reasoning') && node) {
          const m = node.message!
          const more = event === 'reply.delta' ? { content: String(m.content ?? '') + (data.content ?? '') + (data.refusal ?? '') } : { reasoning: (m.reasoning ?? '') + data.reasoning }
          node = { ...node, message: { ...m, ...more } }
          if (!due) {
            due = true
            setTimeout(show, 30) // a page needn't be drawn for each piece
          }
        } else if (event === 'reply.failed') {
          this.failed(new Error(data.detail))
        }
      }
      this.storage?.removeItem(key(mine.thread))
    } catch (error) {
      if (mine.abort.signal.aborted) return
      if (error instanceof Problem && error.status < 500 && error.status !== 429) this.storage?.removeItem(key(mine.thread))
      if (!resumes || !(error instanceof NotFound)) this.failed(error) // one that is gone left nothing
    }
    if (this.reply !== mine) return
    this.reply = undefined
    try {
      await this.load()
      await this.list()
    } catch (error) {
      this.failed(error)
    } finally {
      if (!this.reply) this.set({ running: false })
    }
  }
}

const key = (thread: string) => `coppice-reply-${thread}`

const stored = (m: Message): StoredNode => ({ id: m.id, parentId: m.parent_id, role: m.role, createdAt: m.created_at, message: m })

/** draft is a message as it will be, while the server doesn't have it yet. */
function draft(id: string, parent_id: string | null, role: Message['role'], content: NonNullable<Message['content']>): Message {
  return { id, conversation_id: '', parent_id, role, content, pinned: false, metadata: {}, tokens: 0, depth: 0, siblings: { index: 1, count: 1 }, created_at: new Date().toISOString() }
}
