// The reader of server-sent events, which the package doesn't export.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const { serverSentEvents } = await import(new URL('../node_modules/@coppice-chat/client/dist/events.js', import.meta.url))

const stream = 'id: 1\nevent: a\ndata: é\n\n: comment\ndata:x\ndata: y\n\nevent: empty\n\ndata\n\nid: 2\r\ndata: crlf\r\n\r\ndata: cut'
const want = [
  { id: '1', event: 'a', data: 'é' },
  { id: undefined, event: 'message', data: 'x\ny' },
  { id: undefined, event: 'message', data: '' },
  { id: '2', event: 'message', data: 'crlf' },
]

test('events however they are cut', async () => {
  const bytes = new TextEncoder().encode(stream)
  for (let size = 1; size <= bytes.length; size++) {
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < bytes.length; i += size) controller.enqueue(bytes.slice(i, i + size))
        controller.close()
      },
    })
    const got = []
    for await (const e of serverSentEvents(body)) got.push(e)
    assert.deepEqual(got, want, `in pieces of ${size} bytes`)
  }
})

test('positions go from writes and events to reads, and the newest of a stream stands for the others', async () => {
  const { Coppice } = await import('@coppice-chat/client')
  const sent = []
  const stream = 'event: stream.started\nid: 1\ndata: {"resumed":false,"position":"d"}\n\nevent: messages.appended\nid: 2\ndata: {"conversation_id":"x","position":"e"}\n\n'
  const answers = { POST: () => Response.json({ id: 'x' }, { status: 201, headers: { 'Coppice-Position': 'a' } }), GET: () => Response.json({ data: [], next_cursor: null }), events: () => new Response(stream) }
  const coppice = new Coppice({
    baseURL: 'http://coppice.test', maxRetries: 0, fetch: async (url, { method, headers }) => {
      sent.push([method, headers['Coppice-Position']])
      return answers[url.endsWith('/events') ? 'events' : method]()
    },
  })
  await coppice.listConversations()
  await coppice.createConversation()
  await coppice.listConversations()
  const seen = []
  for await (const { event } of coppice.watchTenant()) if (seen.push(event) === 2) break
  await coppice.listConversations()
  assert.deepEqual(seen, ['stream.started', 'messages.appended'])
  assert.deepEqual(sent, [['GET', undefined], ['POST', undefined], ['GET', 'a'], ['GET', 'a'], ['GET', 'e']])
})

test('several replies go on one by one after their stream ended, and give their positions', async () => {
  const { Coppice } = await import('@coppice-chat/client')
  const sent = []
  const event = (name, data) => `event: ${name}\nid: 1\ndata: ${JSON.stringify(data)}\n\n`
  const streams = [
    event('reply.started', { message_id: 'a' }) + event('reply.started', { message_id: 'b' }) + event('reply.completed', { message_id: 'a', position: 'p' }),
    event('reply.completed', { position: 'q' }),
  ]
  const coppice = new Coppice({
    baseURL: 'http://coppice.test', maxRetries: 0, fetch: async (url, { headers }) => {
      sent.push([new URL(url).pathname.replace('/v1/conversations', ''), headers['Coppice-Position']])
      return streams.length > 0 ? new Response(streams.shift()) : Response.json({ data: [], next_cursor: null })
    },
  })
  const seen = []
  for await (const { event, data } of coppice.createReplies('c', 'h', { n: 2 })) seen.push([event, data.message_id])
  await coppice.listConversations()
  assert.deepEqual(seen, [['reply.started', 'a'], ['reply.started', 'b'], ['reply.completed', 'a'], ['reply.completed', 'b']])
  assert.deepEqual(sent, [['/c/branches/h/replies', undefined], ['/c/replies/b/events', 'p'], ['', 'q']])
})
