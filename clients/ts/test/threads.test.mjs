// The store behind assistant-ui's runtime, which the package doesn't export, over a
// server whose answers come when a test lets them. THREADS is its address.
import assert from 'node:assert/strict'
import { test } from 'node:test'

const { Threads } = await import(process.env.THREADS)

const turn = () => new Promise(done => setImmediate(done))

/** A tree of a question with three answers, and what is asked of its server. */
function serve() {
  const said = id => ({ id, conversation_id: 't', parent_id: id === 'q' ? null : 'q', role: id === 'q' ? 'user' : 'assistant', content: id, created_at: '' })
  const state = { head: 'a', conversations: ['t', 'u'] }
  const asked = []
  const held = []
  const answer = async (name, value) => {
    asked.push(name)
    if (held.some(h => h.name === name)) await held.find(h => h.name === name).free
    return value
  }
  const client = {
    listConversations: () => answer('list', { data: state.conversations.map(id => ({ id, title: id })) }),
    getTree: () => answer('tree', { head_id: state.head, data: ['q', 'a', 'b', 'c'].map(id => ({ ...said(id), kind: 'message' })) }),
    getTranscript: (_, head) => answer(`transcript ${head}`, { data: [said('q'), said(head)] }),
    updateConversation: (id, { head_id }) => {
      if (head_id) state.head = head_id
      return answer(`head ${head_id}`, { id })
    },
    deleteConversation: id => {
      state.conversations = state.conversations.filter(c => c !== id)
      return answer('delete')
    },
  }
  /** hold keeps answers of a name until the function that it gives is called. */
  const hold = name => {
    const h = { name }
    h.free = new Promise(free => (h.release = free))
    held.push(h)
    return () => {
      held.splice(held.indexOf(h), 1)
      h.release()
    }
  }
  const errors = []
  return { asked, hold, errors, state, threads: new Threads(client, () => ({}), error => errors.push(error), undefined) }
}

test('a tree that is read while the branch is switched does not switch it back', async () => {
  const { threads, hold, state } = serve()
  await threads.open('t')
  const release = hold('tree')
  const loading = threads.load()
  await turn()
  const showing = threads.show('b')
  await turn()
  release()
  await Promise.all([loading, showing])
  assert.equal(threads.snapshot().headId, 'b')
  assert.equal(state.head, 'b')
  assert.equal(threads.snapshot().nodes.get('b').message.content, 'b')
})

test('of two switches the last one stays, here and at the server', async () => {
  const { threads, hold, state, asked } = serve()
  await threads.open('t')
  const release = hold('head b')
  const first = threads.show('b')
  await turn()
  const second = threads.show('c')
  await turn()
  assert.ok(!asked.includes('head c'), 'the second is sent before the first is done')
  release()
  await Promise.all([first, second])
  assert.equal(threads.snapshot().headId, 'c')
  assert.equal(state.head, 'c')
})

test('a list that is older than a deletion does not bring the thread back', async () => {
  const { threads, hold } = serve()
  const release = hold('list')
  const listing = threads.list()
  await turn()
  const deleting = threads.delete('u')
  await turn()
  release()
  await Promise.all([listing, deleting])
  assert.deepEqual(threads.snapshot().threads.map(t => t.id), ['t'])
})

test('what is read of a thread that was left is not taken for one that is opened again', async () => {
  const { threads, hold, errors, state } = serve()
  const release = hold('tree')
  const first = threads.open('t')
  await turn()
  const away = threads.open(undefined)
  state.head = 'b'
  const again = threads.open('t')
  await turn()
  release()
  await Promise.all([first, away, again])
  assert.equal(threads.snapshot().headId, 'b')
  assert.equal(threads.snapshot().loading, false)
  assert.deepEqual(errors, [])
})
