/**
 * A client of Coppice's REST API: every route is a method, typed from the
 * server's own description.
 *
 *     const coppice = new Coppice({ baseURL: 'http://127.0.0.1:8787' })
 *     const { id } = await coppice.createConversation({ title: 'An orchard' })
 *     for await (const { event, data } of coppice.createReply(id, 'active', { message: { role: 'user', content: 'Which apples keep?' } }))
 *       if (event === 'reply.delta') process.stdout.write(data.content ?? '')
 *
 * Every method may throw a CoppiceError: a Problem where the server refused, a
 * ConnectionError where no answer came. Requests that fail in passing are sent
 * again; what they create has an id or a key, so nothing is done twice.
 */
import { changes, type ChangeEvent, type WatchOptions } from './changes.js'
import { HTTP, type Call, type CallOptions, type Options, type StreamOptions } from './http.js'
import type { components, operations } from './openapi.js'
import { problemOf, Problem } from './errors.js'
import { serverSentEvents } from './events.js'
import { isLast, Reply, type ReplyEvent } from './reply.js'
import { uuidv7 } from './uuid.js'

export type { ChangeEvent, WatchOptions } from './changes.js'
export * from './errors.js'
export type { CallOptions, Options, StreamOptions } from './http.js'
export type { components, operations, paths } from './openapi.js'
export { Reply, type ReplyEvent } from './reply.js'
export { uuidv7 } from './uuid.js'

/** Schemas are those of the server's description, by their names. */
export type Schemas = components['schemas']

type Query<K extends keyof operations> = operations[K] extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never
type Answered<K extends keyof operations> = operations[K] extends { responses: { 200: { content: { 'application/json': infer T } } } } ? T : never

/** Keyed is a call that creates something. The key makes it safe to send again; without one the client makes one for the call. */
export interface Keyed extends CallOptions {
  idempotencyKey?: string
}

/** The id of a message, or `active` for the conversation's active head. */
export type Head = 'active' | (string & {})

interface Page<T = unknown> {
  data: T[]
  next_cursor: string | null
}

type Entry<P extends Page> = P extends Page<infer T> ? T : never

/** A Listing is a page, when it is awaited, and all entries from there on, when it is iterated over. */
export class Listing<P extends Page> implements PromiseLike<P>, AsyncIterable<Entry<P>> {
  /** @internal */
  constructor(private readonly page: (cursor?: string) => Promise<P>) {}

  then<A = P, B = never>(done?: ((page: P) => A | PromiseLike<A>) | null, failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<A | B> {
    return this.page().then(done, failed)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Entry<P>, void, undefined> {
    for (let page = await this.page(); ; page = await this.page(page.next_cursor)) {
      yield* page.data as Entry<P>[]
      if (page.next_cursor === null) return
    }
  }
}

const at = (conversation: string, ...parts: string[]) => ['/v1/conversations', ...[conversation, ...parts].map(encodeURIComponent)].join('/')

/** A Coppice is a server. Its methods have the names of the operations in the server's description. */
export class Coppice {
  private readonly http: HTTP

  constructor(options: Options = {}) {
    this.http = new HTTP(options)
  }

  /** setKey has later requests bring another key, null for none. */
  setKey(apiKey: string | null) {
    this.http.setKey(apiKey)
  }

  // Conversations

  createConversation(conversation: Schemas['NewConversation'] = {}, options?: Keyed): Promise<Schemas['Conversation']> {
    return this.create('/v1/conversations', conversation, options)
  }

  listConversations(query?: Query<'listConversations'>, options?: CallOptions): Listing<Answered<'listConversations'>> {
    return this.list('/v1/conversations', query, options)
  }

  getConversation(id: string, options?: CallOptions): Promise<Schemas['Conversation']> {
    return this.get(at(id), undefined, options)
  }

  updateConversation(id: string, change: Schemas['ConversationUpdate'], options?: CallOptions): Promise<Schemas['Conversation']> {
    return this.http.call('PATCH', at(id), { json: change, ...options })
  }

  deleteConversation(id: string, options?: CallOptions): Promise<void> {
    return this.http.call('DELETE', at(id), options)
  }

  /** deleteConversations deletes those in which nothing was said since a time. */
  deleteConversations(query: Query<'deleteConversations'>, options?: CallOptions): Promise<Answered<'deleteConversations'>> {
    return this.http.call('DELETE', '/v1/conversations', { query, ...options })
  }

  listTags(query?: Query<'listTags'>, options?: CallOptions): Listing<Answered<'listTags'>> {
    return this.list('/v1/tags', query, options)
  }

  getTree(id: string, query?: Query<'getTree'>, options?: CallOptions): Promise<Answered<'getTree'>> {
    return this.get(at(id, 'tree'), query, options)
  }

  listRoots(id: string, query?: Query<'listRoots'>, options?: CallOptions): Listing<Answered<'listRoots'>> {
    return this.list(at(id, 'roots'), query, options)
  }

  getUsage(id: string, options?: CallOptions): Promise<Answered<'getUsage'>> {
    return this.get(at(id, 'usage'), undefined, options)
  }

  // Messages

  /** appendMessage appends one message. */
  appendMessage(conversation: string, message: Schemas['NewMessage'], options?: Keyed): Promise<Schemas['Message']> {
    return this.create(at(conversation, 'messages'), message, options)
  }

  /** appendMessages appends a chain: each message stands under the one before. */
  appendMessages(conversation: string, chain: Schemas['NewChain'], options?: Keyed): Promise<{ data: Schemas['Message'][] }> {
    return this.create(at(conversation, 'messages'), chain, options)
  }

  getMessage(conversation: string, id: string, options?: CallOptions): Promise<Schemas['Message']> {
    return this.get(at(conversation, 'messages', id), undefined, options)
  }

  /** updateMessage pins a message, rates or labels it, or notes something of it. */
  updateMessage(conversation: string, id: string, change: Schemas['MessageUpdate'], options?: CallOptions): Promise<Schemas['Message']> {
    return this.http.call('PATCH', at(conversation, 'messages', id), { json: change, ...options })
  }

  /** pruneMessage deletes a message and all below it, or undoes a summary. */
  pruneMessage(conversation: string, id: string, options?: CallOptions): Promise<Answered<'pruneMessage'>> {
    return this.http.call('DELETE', at(conversation, 'messages', id), options)
  }

  /** removeMessage deletes a message alone: what stands below it goes on from its parent, under new ids. */
  removeMessage(conversation: string, id: string, options?: CallOptions): Promise<Answered<'pruneMessage'>> {
    return this.http.call('DELETE', at(conversation, 'messages', id), { query: { keep_below: true }, ...options })
  }

  listChildren(conversation: string, id: string, query?: Query<'listChildren'>, options?: CallOptions): Listing<Answered<'listChildren'>> {
    return this.list(at(conversation, 'messages', id, 'children'), query, options)
  }

  getNewestLeaf(conversation: string, id: string, options?: CallOptions): Promise<Schemas['Message']> {
    return this.get(at(conversation, 'messages', id, 'newest-leaf'), undefined, options)
  }

  /** forkMessage copies the branch up to a message into a conversation of its own, with `siblings: 'all'` with the other versions of its messages. */
  forkMessage(conversation: string, id: string, fork: Schemas['NewConversation'] = {}, { siblings, ...options }: Keyed & Query<'forkMessage'> = {}): Promise<Schemas['Conversation']> {
    return this.create(at(conversation, 'messages', id, 'fork') + (siblings ? `?siblings=${siblings}` : ''), fork, options)
  }

  // Branches

  /** compareBranches shows two branches from where they part. */
  compareBranches(conversation: string, query: Query<'compareBranches'>, options?: CallOptions): Promise<Schemas['Comparison']> {
    return this.get(at(conversation, 'compare'), query, options)
  }

  /** getRatings tells how the answers of each model were taken. */
  getRatings(options?: CallOptions): Promise<Schemas['Ratings']> {
    return this.get('/v1/ratings', undefined, options)
  }

  listBranches(conversation: string, query?: Query<'listBranches'>, options?: CallOptions): Listing<Answered<'listBranches'>> {
    return this.list(at(conversation, 'branches'), query, options)
  }

  /** getTranscript gives the branch's last messages, oldest first; the pages go back to the root. */
  getTranscript(conversation: string, head: Head, query?: Query<'getTranscript'>, options?: CallOptions): Listing<Answered<'getTranscript'>> {
    return this.list(at(conversation, 'branches', head, 'transcript'), query, options)
  }

  /** getContext gives what a model should read of the branch. */
  getContext(conversation: string, head: Head, query?: Query<'getContext'>, options?: CallOptions): Promise<Schemas['Context']> {
    return this.get(at(conversation, 'branches', head, 'context'), query, options)
  }

  explainBranch(conversation: string, head: Head, options?: CallOptions): Promise<Answered<'explainBranch'>> {
    return this.get(at(conversation, 'branches', head, 'explain'), undefined, options)
  }

  /** recallBranch gives the messages that answer a question in plain words, ranked. */
  recallBranch(conversation: string, head: Head, query: Query<'recallBranch'>, options?: CallOptions): Promise<Answered<'recallBranch'>> {
    return this.get(at(conversation, 'branches', head, 'recall'), query, options)
  }

  /** recall asks all conversations, as recallBranch asks a branch. */
  recall(query: Query<'recall'>, options?: CallOptions): Promise<Answered<'recall'>> {
    return this.get('/v1/recall', query, options)
  }

  // Keys and tenants

  /** getMe tells for whom a request with this key acts. */
  getMe(options?: CallOptions): Promise<Schemas['Me']> {
    return this.get('/v1/me', undefined, options)
  }

  /** createKey makes a key, which is shown this once. */
  createKey(key: Schemas['NewKey'], options?: CallOptions): Promise<Schemas['CreatedKey']> {
    return this.http.call('POST', '/v1/keys', { json: key, ...options })
  }

  listKeys(query?: Query<'listKeys'>, options?: CallOptions): Listing<Answered<'listKeys'>> {
    return this.list('/v1/keys', query, options)
  }

  revokeKey(id: string, options?: CallOptions): Promise<void> {
    return this.http.call('DELETE', `/v1/keys/${encodeURIComponent(id)}`, options)
  }

  listTenants(options?: CallOptions): Promise<Schemas['TenantPage']> {
    return this.get('/v1/tenants', undefined, options)
  }

  getTenant(id: string, options?: CallOptions): Promise<Schemas['Tenant']> {
    return this.get(`/v1/tenants/${encodeURIComponent(id)}`, undefined, options)
  }

  /** getTenantLimits tells what the tenant used today, and may use. */
  getTenantLimits(id: string, options?: CallOptions): Promise<Schemas['TenantDay']> {
    return this.get(`/v1/tenants/${encodeURIComponent(id)}/limits`, undefined, options)
  }

  /** setTenantLimits limits what it may use in a day. */
  setTenantLimits(id: string, limits: Schemas['TenantLimits'], options?: CallOptions): Promise<Schemas['TenantDay']> {
    return this.http.call('PATCH', `/v1/tenants/${encodeURIComponent(id)}/limits`, { json: limits, ...options })
  }

  /** deleteTenant deletes its keys, conversations and attachments, for good. */
  deleteTenant(id: string, options?: CallOptions): Promise<Answered<'deleteTenant'>> {
    return this.http.call('DELETE', `/v1/tenants/${encodeURIComponent(id)}`, options)
  }

  /** listAuditEvents tells who did what, the newest first. */
  listAuditEvents(query?: Query<'listAuditEvents'>, options?: CallOptions): Listing<Answered<'listAuditEvents'>> {
    return this.list('/v1/audit-events', query, options)
  }

  // Summaries

  /** createCompaction waits for the model that writes the summary. */
  createCompaction(conversation: string, head: Head, demand: Schemas['NewCompaction'] = {}, options?: CallOptions): Promise<Schemas['Compaction']> {
    return this.http.call('POST', at(conversation, 'branches', head, 'compactions'), { json: demand, waits: true, ...options })
  }

  /** createGraft brings to a branch what another one came to. It waits for the model that writes the summary. */
  createGraft(conversation: string, head: Head, graft: Omit<Schemas['NewGraft'], 'dry_run'>, options?: CallOptions): Promise<Schemas['Message']> {
    const json = { id: uuidv7(), ...graft }
    return this.http.call('POST', at(conversation, 'branches', head, 'grafts'), { json, repeatable: true, waits: true, ...options })
  }

  /** writeGraft gives the text that createGraft would bring, and changes nothing. */
  writeGraft(conversation: string, head: Head, graft: Omit<Schemas['NewGraft'], 'dry_run' | 'id' | 'text'>, options?: CallOptions): Promise<Schemas['GraftText']> {
    return this.http.call('POST', at(conversation, 'branches', head, 'grafts'), { json: { ...graft, dry_run: true }, waits: true, ...options })
  }

  listCompactions(conversation: string, query?: Query<'listCompactions'>, options?: CallOptions): Listing<Answered<'listCompactions'>> {
    return this.list(at(conversation, 'compactions'), query, options)
  }

  getSummary(conversation: string, id: string, options?: CallOptions): Promise<Schemas['Summary']> {
    return this.get(at(conversation, 'summaries', id), undefined, options)
  }

  remakeSummary(conversation: string, id: string, demand: Schemas['NewRemake'] = {}, options?: CallOptions): Promise<Schemas['Compaction']> {
    return this.http.call('POST', at(conversation, 'summaries', id, 'remake'), { json: demand, waits: true, ...options })
  }

  /** createShare makes a link to a branch. Its token is told only now. */
  createShare(conversation: string, head: string, share: Schemas['NewShare'] = {}, options?: CallOptions): Promise<Schemas['CreatedShare']> {
    return this.http.call('POST', at(conversation, 'branches', head, 'shares'), { json: share, ...options })
  }

  listShares(conversation: string, options?: CallOptions): Promise<Schemas['SharePage']> {
    return this.get(at(conversation, 'shares'), undefined, options)
  }

  revokeShare(conversation: string, id: string, options?: CallOptions): Promise<void> {
    return this.http.call('DELETE', at(conversation, 'shares', id), { ...options })
  }

  /** getShared reads a page of what a link shows, the newest messages first. It needs no key. */
  getShared(token: string, page: { limit?: number; cursor?: string } = {}, options?: CallOptions): Promise<Schemas['Shared']> {
    return this.get(`/v1/shared/${encodeURIComponent(token)}`, page, options)
  }

  // Replies

  /**
   * createReply has a model answer a branch, and streams the answer. With a
   * message, that is appended first. Nothing is sent before the reply is iterated
   * over, or its message is asked for.
   */
  createReply(conversation: string, head: Head, reply: Omit<Schemas['NewReply'], 'stream' | 'models' | 'n'> = {}, options: StreamOptions = {}): Reply {
    const id = reply.id ?? uuidv7()
    return new Reply(this.http, conversation, id, options, () =>
      this.http.send('POST', at(conversation, 'branches', head, 'replies'), {
        json: { ...reply, id, stream: true }, headers: { Accept: 'text/event-stream' }, repeatable: true, waits: true, signal: options.signal,
      }),
    )
  }

  /**
   * createReplies has several models answer a branch at once, and streams the answers
   * together: each event's data has `message_id`. After a broken connection the answers
   * that didn't end are read on one after the other. It can be iterated over once.
   */
  async *createReplies(conversation: string, head: Head, reply: Omit<Schemas['NewReply'], 'stream'>, options: StreamOptions = {}): AsyncGenerator<ReplyEvent, void, undefined> {
    const answer = await this.http.send('POST', at(conversation, 'branches', head, 'replies'), {
      json: { ...reply, id: reply.id ?? uuidv7(), stream: true }, headers: { Accept: 'text/event-stream' }, repeatable: true, waits: true, signal: options.signal,
    })
    const open = new Map<string, string | undefined>() // the last event of each that didn't end
    const before = this.http.positions
    try {
      for await (const { id, event, data } of serverSentEvents(answer.body!)) {
        if (event === 'stream.closed') throw problemOf(JSON.parse(data) as Schemas['Problem'])
        if (!event.startsWith('reply.')) continue
        const part = { id, event, data: JSON.parse(data) as unknown } as ReplyEvent
        const of = part.data.message_id!
        if ('position' in part.data) this.http.heard(part.data.position, before)
        if (isLast(part)) open.delete(of)
        else open.set(of, id)
        yield part
      }
    } catch (error) {
      if (options.signal?.aborted || error instanceof Problem || open.size === 0) throw error
    }
    for (const [of, lastEventId] of open) {
      for await (const part of this.readReply(conversation, of, { ...options, lastEventId })) {
        part.data.message_id = of
        yield part
      }
    }
  }

  /** readReply reads the events of a reply that runs, or ended not long ago, after the event of an id. */
  readReply(conversation: string, id: string, { lastEventId, ...options }: StreamOptions & { lastEventId?: string } = {}): Reply {
    return new Reply(this.http, conversation, id, options, undefined, lastEventId)
  }

  /** stopReply ends a reply, and gives what is stored of it. */
  stopReply(conversation: string, id: string, options?: CallOptions): Promise<Schemas['StoppedReply']> {
    return this.http.call('DELETE', at(conversation, 'replies', id), options)
  }

  /** listReplies lists the replies that run in a conversation, on any server. */
  listReplies(conversation: string, options?: CallOptions): Listing<Answered<'listReplies'>> {
    return this.list(at(conversation, 'replies'), undefined, options)
  }

  // Changes

  /** watchTenant tells what changes in all conversations, until the signal ends it or the loop is left. */
  watchTenant(options?: WatchOptions): AsyncGenerator<ChangeEvent, void, undefined> {
    return changes(this.http, '/v1/events', options)
  }

  /** watchConversation tells what changes in one conversation, until that is deleted. */
  watchConversation(id: string, options?: WatchOptions): AsyncGenerator<ChangeEvent, void, undefined> {
    return changes(this.http, at(id, 'events'), options)
  }

  // The server

  listPresets(options?: CallOptions): Listing<Answered<'listPresets'>> {
    return this.list('/v1/presets', undefined, options)
  }

  listModels(options?: CallOptions): Listing<Answered<'listModels'>> {
    return this.list('/v1/models', undefined, options)
  }

  /** acceptModels has the models of an offer of the list answer, by its base_url. */
  acceptModels(offer: Schemas['AcceptedOffer'], options?: CallOptions): Promise<Answered<'listModels'>> {
    return this.http.call('POST', '/v1/models', { json: offer, repeatable: true, ...options })
  }

  /** search finds messages by their words. */
  search(query: Query<'search'>, options?: CallOptions): Listing<Answered<'search'>> {
    return this.list('/v1/search', query, options)
  }

  /** exportConversation gives the open answer: its body is the file. */
  exportConversation(id: string, query?: Query<'exportConversation'>, options?: CallOptions): Promise<Response> {
    return this.http.send('GET', at(id, 'export'), { query: query ?? {}, headers: { Accept: '*/*' }, waits: true, ...options })
  }

  /** createImport reads conversations from a file. Importing it again adds nothing. */
  createImport(file: BodyInit, query?: Query<'createImport'>, options?: CallOptions): Promise<Answered<'createImport'>> {
    const headers = { 'Content-Type': 'application/octet-stream' }
    return this.http.call('POST', '/v1/imports', { body: file, query: query ?? {}, headers, repeatable: !(file instanceof ReadableStream), waits: true, ...options })
  }

  /** createAttachment stores a picture or a file. The answer's `part` goes into the content of a message. */
  createAttachment(file: BodyInit, query?: Query<'createAttachment'>, options?: CallOptions): Promise<Answered<'createAttachment'>> {
    const headers = { 'Content-Type': 'application/octet-stream' }
    return this.http.call('POST', '/v1/attachments', { body: file, query: query ?? {}, headers, repeatable: !(file instanceof ReadableStream), waits: true, ...options })
  }

  async getAttachment(hash: string, options?: CallOptions): Promise<Blob> {
    return (await this.http.send('GET', `/v1/attachments/${encodeURIComponent(hash)}`, { ...options })).blob()
  }

  /** getAttachmentSize gives the bytes that an attachment has, without reading them. */
  async getAttachmentSize(hash: string, options?: CallOptions): Promise<number> {
    return Number((await this.http.send('HEAD', `/v1/attachments/${encodeURIComponent(hash)}`, { ...options })).headers.get('Content-Length'))
  }

  getHealth(options?: CallOptions): Promise<Answered<'getHealth'>> {
    return this.get('/healthz', undefined, options)
  }

  getReadiness(options?: CallOptions): Promise<Answered<'getReadiness'>> {
    return this.get('/readyz', undefined, options)
  }

  /** getMetrics gives the figures in Prometheus' text format. */
  async getMetrics(options?: CallOptions): Promise<string> {
    return (await this.http.send('GET', '/metrics', { headers: { Accept: '*/*' }, ...options })).text()
  }

  /** getSpec gives the server's description, in YAML. */
  async getSpec(options?: CallOptions): Promise<string> {
    return (await this.http.send('GET', '/openapi.yaml', { headers: { Accept: '*/*' }, ...options })).text()
  }

  private get<T>(path: string, query: object | undefined, options: CallOptions | undefined): Promise<T> {
    return this.http.call('GET', path, { ...(query && { query }), ...options })
  }

  private list<P extends Page>(path: string, query: object | undefined, options: CallOptions | undefined): Listing<P> {
    return new Listing<P>(cursor => this.get(path, { ...query, ...(cursor !== undefined && { cursor }) }, options))
  }

  private create<T>(path: string, json: object, { idempotencyKey = uuidv7(), ...options }: Keyed = {}): Promise<T> {
    const call: Call = { json, headers: { 'Idempotency-Key': idempotencyKey }, repeatable: true, ...options }
    return this.http.call('POST', path, call)
  }
}
