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
