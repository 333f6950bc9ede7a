// Drives a running server, whose model is a fake: COPPICE_URL says where it is,
// COPPICE_KEYS has a key for each test, each of a tenant of its own.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import * as client from '@coppice-chat/client'
import { ConnectionError, Coppice, InvalidRequest, NotFound, TimeoutError, Unauthorized } from '@coppice-chat/client'

const baseURL = process.env.COPPICE_URL
const keys = process.env.COPPICE_KEYS.split(',')

/** connect gives a client for a tenant that has nothing yet. */
const connect = (options = {}) => new Coppice({ baseURL, apiKey: keys.pop(), ...options })

const user = content => ({ role: 'user', content })
const collect = async all => {
  const out = []
  for await (const one of all) out.push(one)
  return out
}

test('a conversation with branches', async () => {
  const coppice = connect()
  const { id } = await coppice.createConversation({ title: 'An orchard', settings: { max_context_tokens: 2000, reserved_tokens: 200, min_fold_tokens: 10, compaction: 'manual' } })
  const chain = await coppice.appendMessages(id, {
    parent_id: null,
    messages: [{ role: 'system', content: 'You help to plan an orchard.' }, ...Array.from({ length: 6 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `Row ${i} of hazel. `.repeat(9) }))],
  })
  assert.equal(chain.data.length, 7)
  const last = chain.data.at(-1)

  const events = await collect(coppice.createReply(id, 'active', { message: user('Which apples keep?') }))
  assert.deepEqual([events[0].event, events.at(-1).event], ['reply.started', 'reply.completed'])
  const { message: answer } = events.at(-1).data
  assert.equal(events.filter(e => e.event === 'reply.delta').map(e => e.data.content).join(''), answer.content)

  // An edit, a regeneration, and the branches that come of them.
  const edited = await coppice.createReply(id, 'active', { message: { ...user('Which pears keep?'), parent_id: last.id } }).message()
  const question = await coppice.getMessage(id, edited.parent_id)
  assert.deepEqual(question.siblings, { index: 2, count: 2 })
  const regenerated = await coppice.createReply(id, edited.parent_id).message()
  assert.equal(regenerated.siblings.count, 2)
  assert.deepEqual((await collect(coppice.listBranches(id, { limit: 1 }))).map(m => m.id).sort(), [answer.id, edited.id, regenerated.id].sort())
  assert.equal((await coppice.listBranches(id, { limit: 2 })).data.length, 2)
  assert.equal((await collect(coppice.listChildren(id, last.id))).length, 2)
  assert.equal((await coppice.getNewestLeaf(id, question.id)).id, regenerated.id)
  assert.equal((await collect(coppice.listRoots(id))).length, 1)
  assert.equal((await coppice.getTree(id)).data.length, 12)
  assert.deepEqual((await collect(coppice.getTranscript(id, answer.id, { limit: 4 }))).map(m => m.depth).sort((a, b) => a - b), [0, 1, 2, 3, 4, 5, 6, 7, 8])

  // Contexts and summaries.
  const compaction = await coppice.createCompaction(id, 'active', { keep_recent_messages: 2 })
  assert.equal(compaction.outcome, 'saved')
  assert.equal((await coppice.getContext(id, 'active')).summary.id, compaction.summary_id)
  assert.equal((await coppice.getSummary(id, compaction.summary_id)).id, compaction.summary_id)
  assert.equal((await coppice.explainBranch(id, 'active')).summaries.length, 1)
  assert.equal((await coppice.listCompactions(id)).data.length, 1)
  assert.equal((await coppice.remakeSummary(id, compaction.summary_id)).remade_id, compaction.summary_id)
  assert.ok((await coppice.recallBranch(id, 'active', { query: 'hazel in which row?' })).data.length > 0)
  assert.equal((await coppice.getUsage(id)).replies.calls, 3)

  // Elsewhere, and away.
  const hits = await collect(coppice.search({ query: 'pears', conversation_id: id }))
  assert.ok(hits.length >= 1)
  const fork = await coppice.forkMessage(id, answer.id, { title: 'A fork' }, { siblings: 'all' })
  assert.equal((await collect(coppice.listBranches(fork.id))).length, 3)
  assert.equal((await coppice.updateConversation(fork.id, { title: 'Another title' })).title, 'Another title')
  assert.equal((await coppice.getConversation(fork.id)).title, 'Another title')
  assert.equal((await collect(coppice.listConversations({ limit: 1 }))).length, 2)
  const file = await (await coppice.exportConversation(id)).blob()
  assert.equal((await coppice.createImport(file, { dry_run: true })).conversations, 1)
  assert.equal((await coppice.pruneMessage(id, question.id)).messages, 3)
  await coppice.deleteConversation(id)
  await assert.rejects(coppice.getConversation(id), NotFound)
})

test('the server', async () => {
  const coppice = connect()
  assert.deepEqual((await collect(coppice.listModels())).map(m => m.default), [true])
  assert.equal((await coppice.getHealth()).status, 'ok')
  assert.equal((await coppice.getReadiness()).status, 'ok')
  assert.match(await coppice.getMetrics(), /coppice_http_requests_total/)
  assert.match(await coppice.getSpec(), /^openapi: 3/)
})

test('every operation has a method', async () => {
  const spec = await connect().getSpec()
  const operations = [...spec.matchAll(/^ {6}operationId: (\w+)$/gm)].map(m => m[1]).filter(name => name !== 'getDocs') // which is a page
  assert.ok(operations.length > 30)
  assert.deepEqual(operations.filter(name => typeof Coppice.prototype[name] !== 'function'), [])
})

/** silent is a fetch that never answers. */
const silent = (_, { signal }) => new Promise((_, fail) => {
  const awake = setInterval(() => {}, 1000) // AbortSignal's own timer doesn't keep Node.js running
  signal.addEventListener('abort', () => {
    clearInterval(awake)
    fail(signal.reason)
  })
})

test('errors', async () => {
  const coppice = connect()
  const nowhere = '00000000-0000-7000-8000-000000000000'
  await assert.rejects(coppice.getConversation(nowhere), e => e instanceof NotFound && e.code === 'conversation_not_found' && e.status === 404 && /^[0-9a-f-]{36}$/.test(e.requestId))
  await assert.rejects(coppice.createConversation({ settings: { keep_ratio: 7 } }), e => e instanceof InvalidRequest && e.field === 'settings.keep_ratio')
  await assert.rejects(coppice.createReply(nowhere, 'active').message(), NotFound)
  await assert.rejects(collect(coppice.readReply(nowhere, nowhere)), NotFound)
  await assert.rejects(collect(coppice.listConversations({ cursor: 'none' })), e => e.code === 'invalid_cursor')
  await assert.rejects(new Coppice({ baseURL, apiKey: 'unknown' }).getConversation(nowhere), Unauthorized)
  await assert.rejects(new Coppice({ baseURL: 'http://127.0.0.1:1', maxRetries: 0 }).getHealth(), ConnectionError)
  await assert.rejects(new Coppice({ baseURL, timeout: 1, maxRetries: 0, fetch: silent }).getHealth(), TimeoutError)
  const page = () => Promise.resolve(new Response('<h1>Bad gateway</h1>', { status: 502 }))
  await assert.rejects(new Coppice({ baseURL, maxRetries: 0, fetch: page }).getHealth(), e => e instanceof client.ServerError && e.code === 'unknown' && e.status === 502)
  assert.equal((await new Coppice({ baseURL, timeout: 0, fetch: (url, init) => fetch(url, (assert.equal(init.signal, undefined), init)) }).getHealth()).status, 'ok')
  const reason = new Error('enough')
  await assert.rejects(coppice.getHealth({ signal: AbortSignal.abort(reason) }), reason)
})

/** failing is a fetch whose first answers are replaced. */
const failing = (...faults) => {
  const calls = []
  const go = async (url, init) => {
    calls.push(init)
    const fault = faults.shift()
    return fault ? fault(url, init) : fetch(url, init)
  }
  return { calls, fetch: go }
}
const lost = async (url, init) => { await fetch(url, init); throw new TypeError('connection reset') } // it arrived, and its answer didn't
const busy = async () => Response.json({ type: 'about:blank', title: '', status: 429, code: 'rate_limited', detail: '' }, { status: 429, headers: { 'Retry-After': '0' } })

test('what is sent again does nothing twice', async () => {
  const { calls, fetch } = failing(lost, busy)
  const coppice = connect({ fetch })
  const { id } = await coppice.createConversation({ title: 'Once' })
  assert.equal(calls.length, 3)
  assert.equal(new Set(calls.map(c => c.headers['Idempotency-Key'])).size, 1)
  assert.deepEqual((await collect(coppice.listConversations())).map(c => c.id), [id])
  // A compaction has no key: it isn't sent again unless the server says that it did nothing.
  const once = failing(lost)
  await assert.rejects(new Coppice({ baseURL, apiKey: 'x', fetch: once.fetch }).createCompaction(id, 'active'), ConnectionError)
  assert.equal(once.calls.length, 1)
})

/** cut ends a stream with an error after some events. */
const cut = events => async (url, init) => {
  const answer = await fetch(url, init)
  let left = events
  const body = answer.body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
    transform(chunk, controller) {
      const parts = chunk.split('\n\n')
      if (parts.length - 1 < left) {
        left -= parts.length - 1
        return controller.enqueue(chunk)
      }
      controller.enqueue(parts.slice(0, left).map(p => p + '\n\n').join('') + 'id: 99\nevent: reply.del')
      controller.error(new TypeError('terminated'))
    },
  })).pipeThrough(new TextEncoderStream())
  return new Response(body, answer)
}

test('a stream that breaks is picked up again', async () => {
  const { calls, fetch } = failing(undefined, cut(1), busy, cut(1), lost)
  const coppice = connect({ fetch, maxRetries: 0 })
  const { id } = await coppice.createConversation()
  const events = await collect(coppice.createReply(id, 'active', { message: user('Which apples keep?') }))
  assert.equal(events[0].event, 'reply.started')
  assert.equal(events.at(-1).event, 'reply.completed')
  assert.equal(events.filter(e => e.event === 'reply.delta').map(e => e.data.content).join(''), events.at(-1).data.message.content)
  assert.ok(calls.length >= 6)
  assert.deepEqual(calls.slice(1).map(c => c.headers['Last-Event-ID']).slice(0, 3), [undefined, '1', '1'])
  assert.equal((await coppice.getTree(id)).data.length, 2)
})

test('who reads a reply may say when its stream is read on', async () => {
  const { fetch } = failing(undefined, busy, lost, cut(1))
  const causes = []
  const coppice = connect({ fetch, maxRetries: 0 })
  const { id } = await coppice.createConversation()
  const events = await collect(coppice.createReply(id, 'active', { message: user('Which apples keep?') }, {
    reconnect: async (attempt, cause) => { causes.push([attempt, cause.constructor.name]) },
  }))
  assert.equal(events.at(-1).event, 'reply.completed')
  assert.deepEqual(causes, [[0, 'RateLimited'], [1, 'ConnectionError'], [0, 'ConnectionError']])
  const enough = new Error('enough')
  await assert.rejects(collect(connect({ fetch: failing(busy).fetch, maxRetries: 0 }).createReply(id, 'active', {}, { reconnect: () => Promise.reject(enough) })), enough)
})

test('a client takes another key', async () => {
  const coppice = new Coppice({ baseURL, maxRetries: 0 })
  await assert.rejects(collect(coppice.listConversations()), Unauthorized)
  coppice.setKey(keys.pop())
  assert.deepEqual(await collect(coppice.listConversations()), [])
  coppice.setKey(null)
  await assert.rejects(collect(coppice.listConversations()), Unauthorized)
})

test('an attachment has a size', async () => {
  const coppice = connect()
  const { hash } = await coppice.createAttachment('Eight rows of hazel.', { name: 'rows.txt' })
  assert.equal(await coppice.getAttachmentSize(hash), 20)
  assert.equal(await (await coppice.getAttachment(hash)).text(), 'Eight rows of hazel.')
})

test('a reply is read by others, and stopped', async () => {
  const coppice = connect()
  const { id } = await coppice.createConversation()
  const reply = coppice.createReply(id, 'active', { message: user('hang') })
  for await (const { event } of reply) {
    if (event === 'reply.started') break // which leaves the reply running
  }
  const other = collect(coppice.readReply(id, reply.id))
  const stopped = await coppice.stopReply(id, reply.id)
  assert.equal(stopped.status, 'stopped')
  assert.equal((await other).at(-1).event, 'reply.stopped')
  await assert.rejects(collect(reply), client.CoppiceError)
})

test('changes are told, and read on', async () => {
  const coppice = connect()
  const { id } = await coppice.createConversation()
  const running = coppice.createReply(id, 'active', { message: user('hang') })
  for await (const { event } of running) if (event === 'reply.started') break
  assert.deepEqual((await collect(coppice.listReplies(id))).map(r => r.message_id), [running.id])
  await coppice.stopReply(id, running.id)
  const seen = []
  let first
  for await (const { id: at, event } of coppice.watchConversation(id)) {
    seen.push(event)
    if (event === 'stream.started') {
      first = at
      await coppice.updateConversation(id, { title: 'Another' })
    }
    if (event === 'conversation.updated') break
  }
  for await (const { event, data } of coppice.watchConversation(id, { lastEventId: first })) {
    seen.push(event)
    if (event === 'stream.started') assert.equal(data.resumed, true)
    if (event === 'conversation.updated') await coppice.deleteConversation(id)
  }
  assert.deepEqual(seen, ['stream.started', 'conversation.updated', 'stream.started', 'conversation.updated', 'conversation.deleted'])
  for await (const { event } of coppice.watchTenant({ signal: AbortSignal.timeout(60_000) })) if (event === 'stream.started') break
  await assert.rejects(coppice.watchConversation(id).next(), NotFound)
})

test('conversations are put in order', async () => {
  const coppice = connect()
  const tag = `wood ${client.uuidv7()}`
  const { id } = await coppice.createConversation()
  const put = await coppice.updateConversation(id, { archived: true, pinned: true, tags: [tag] })
  assert.deepEqual([put.archived, put.pinned, put.tags], [true, true, [tag]])
  assert.deepEqual((await collect(coppice.listConversations({ archived: true, tag }))).map(c => c.id), [id])
  assert.deepEqual(await collect(coppice.listConversations({ tag })), [])
  assert.ok((await collect(coppice.listTags({ archived: true }))).some(t => t.tag === tag && t.conversations === 1))
  const m = await coppice.appendMessage(id, { parent_id: null, ...user('Hello') })
  assert.equal((await coppice.updateMessage(id, m.id, { pinned: true })).pinned, true)
  assert.equal((await coppice.getMessage(id, m.id)).pinned, true)
  assert.deepEqual(await collect(coppice.listPresets()), [])
})

test('a reply that fails', async () => {
  const coppice = connect()
  const { id } = await coppice.createConversation()
  const events = await collect(coppice.createReply(id, 'active', { message: user('fail') }))
  assert.equal(events.at(-1).event, 'reply.failed')
  await assert.rejects(coppice.createReply(id, 'active').message(), client.ServerError)
})

test('ids sort by time', () => {
  const ids = [0, 1, 255, 256, 2 ** 40, Date.now()].map(client.uuidv7)
  assert.deepEqual([...ids].sort(), ids)
  assert.match(ids[0], /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})
