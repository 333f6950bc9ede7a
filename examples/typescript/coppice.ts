// A client of Coppice's REST API in TypeScript, with fetch and no library.
//
//   node coppice.ts http://127.0.0.1:8787
//
// talks with a running server: it creates a conversation, appends, streams a
// reply, edits a message, lists what a model would read, and compacts. A key, if
// the server wants one, comes from the variable COPPICE_KEY. Node runs the file
// as it is from version 22.18 on.
//
// The types come from the server's own description:
//   npx openapi-typescript http://127.0.0.1:8787/openapi.yaml -o openapi.d.ts
import type { components } from '../../clients/ts/src/openapi.ts'

type Schemas = components['schemas']
type Message = Schemas['Message']
type Page<T> = { data: T[]; next_cursor: string | null }

/** Problem is an answer that is an error: its code is for programs, its detail for people. */
class Problem extends Error {
  code: string
  constructor(problem: Schemas['Problem']) {
    super(`${problem.status} ${problem.code}: ${problem.detail}`)
    this.code = problem.code
  }
}

class Coppice {
  private url: string
  private key: string | undefined

  constructor(url: string, key?: string) {
    this.url = url.replace(/\/$/, '') + '/v1'
    this.key = key
  }

  /** send sends a request and gives the open answer. */
  async send(method: string, path: string, body?: object, idempotencyKey?: string): Promise<Response> {
    const headers: Record<string, string> = {}
    if (this.key) headers['Authorization'] = 'Bearer ' + this.key
    if (body) headers['Content-Type'] = 'application/json'
    if (idempotencyKey) headers['Idempotency-Key'] = idempotencyKey // makes the request safe to send again
    const answer = await fetch(this.url + path, { method, headers, body: body ? JSON.stringify(body) : null })
    if (!answer.ok) throw new Problem((await answer.json()) as Schemas['Problem'])
    return answer
  }

  async call<T>(method: string, path: string, body?: object, idempotencyKey?: string): Promise<T> {
    return (await (await this.send(method, path, body, idempotencyKey)).json()) as T
  }

  /** reply gives the events of a reply, as they come. */
  async *reply(conversation: string, body: Schemas['NewReply'], head = 'active'): AsyncGenerator<Schemas['ReplyEvent']> {
    const answer = await this.send('POST', `/conversations/${conversation}/branches/${head}/replies`, { ...body, stream: true })
    for await (const { event, data } of events(answer.body!)) yield { event, data: JSON.parse(data) } as Schemas['ReplyEvent']
  }
}

/** events reads server-sent events. Lines that begin with a colon are comments. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<{ event: string; data: string }> {
  let rest = '', event = 'message', data: string[] = []
  const decoder = new TextDecoder()
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line)!
      if (line === '') {
        if (data.length) yield { event, data: data.join('\n') }
        event = 'message'
        data = []
      } else if (field === 'event') event = value!
      else if (field === 'data') data.push(value!)
    }
  }
}

/** stream prints an answer as it comes, and gives the stored message. */
async function stream(client: Coppice, conversation: string, body: Schemas['NewReply']): Promise<Message> {
  for await (const event of client.reply(conversation, body)) {
    switch (event.event) {
      case 'reply.delta':
        process.stdout.write(event.data.content ?? '')
        break
      case 'reply.completed':
        process.stdout.write('\n')
        return event.data.message
      case 'reply.failed':
      case 'reply.stopped':
      case 'stream.closed':
        throw new Error(`${event.event}: ${JSON.stringify(event.data)}`)
    }
  }
  throw new Error('the stream ended before the answer did')
}

async function main(url: string) {
  const client = new Coppice(url, process.env['COPPICE_KEY'])

  // The window is small, so that a short talk is worth a summary.
  const settings = { max_context_tokens: 2000, reserved_tokens: 200, min_fold_tokens: 100, keep_user_ratio: 0, compaction: 'manual' }
  const { id: conversation } = await client.call<Schemas['Conversation']>('POST', '/conversations', { title: 'An orchard', settings })
  const at = `/conversations/${conversation}`

  // Messages that are there already come as a chain, each under the one before.
  const talk = [{ role: 'system', content: 'You help to plan an orchard.' }]
  for (const tree of ['apple', 'plum', 'pear', 'quince']) {
    talk.push({ role: 'user', content: `Does a ${tree} grow on clay? ` + 'The plot slopes to the north. '.repeat(5) })
    talk.push({ role: 'assistant', content: `A ${tree} does. ` + 'Plant it in autumn, and water it in the first two summers. '.repeat(5) })
  }
  const chain = await client.call<Page<Message>>('POST', at + '/messages', { parent_id: null, messages: talk }, 'begin ' + conversation)
  const last = chain.data.at(-1)!
  console.log('appended', chain.data.length, 'messages')

  // A question and its answer, in one request.
  const answer = await stream(client, conversation, { message: { role: 'user', content: 'Which apples keep until March?' } })

  // An edit is another message under the same parent. The first question stays.
  const edited = await stream(client, conversation, { message: { parent_id: last.id, role: 'user', content: 'Which apples keep until May?' } })
  const question = await client.call<Message>('GET', `${at}/messages/${edited.parent_id}`)
  console.log('version', question.siblings.index, 'of', question.siblings.count)
  const heads = (await client.call<Page<Message>>('GET', at + '/branches')).data.map(leaf => leaf.id)
  if (!heads.includes(answer.id) || !heads.includes(edited.id)) throw new Error('a branch is missing')
  console.log(heads.length, 'branches')

  // What a model reads of the branch, before and after a compaction.
  const look = async () => {
    const context = await client.call<Schemas['Context']>('GET', at + '/branches/active/context')
    console.log('a model reads', context.messages.length, 'messages;', context.counts.folded, 'are folded')
  }
  await look()
  const record = await client.call<Schemas['Compaction']>('POST', at + '/branches/active/compactions', { keep_recent_messages: 2 })
  console.log('compaction:', record.outcome)
  await look()

  // What goes wrong has a code.
  try {
    await client.call('GET', '/conversations/00000000-0000-7000-8000-000000000000')
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem
    console.log('problem:', problem.code)
  }
}

const url = process.argv[2]
if (!url) {
  console.error('usage: coppice.ts URL')
  process.exit(1)
}
await main(url)
