// The official SDK for JavaScript.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAI, { BadRequestError, NotFoundError } from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { model, saw, tenant } from './coppice.mjs'

const client = () => {
  const t = tenant()
  return { t, ai: new OpenAI({ apiKey: t.key, baseURL: t.baseURL }) }
}

const weather = { type: 'function', name: 'get_weather', description: 'The weather of a city', strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } }

test('a response', async () => {
  const { t, ai } = client()
  const { data, response, request_id } = await ai.responses.create({ model, input: 'Hello [m:a]' }).withResponse()
  assert.equal(data.output_text, 'Saw [m:a].')
  assert.equal(data.status, 'completed')
  assert(data.usage.output_tokens > 0)
  assert(request_id)
  assert.deepEqual(await t.branches(response.headers.get('x-coppice-conversation-id')), [['user: Hello [m:a]', saw('a')]])
})

test('two responses after the same one are siblings', async () => {
  const { t, ai } = client()
  const first = await ai.responses.create({ model, input: 'One [m:a]', instructions: 'Be brief [m:i]' })
  assert.equal(first.output_text, 'Saw [m:i] [m:a].')
  const [left, right] = await Promise.all(['left', 'right'].map(m => ai.responses.create({ model, previous_response_id: first.id, input: `Two [m:${m}]` })))
  // [m:i] stands in the first answer's text alone: instructions aren't inherited.
  assert.equal(left.output_text, 'Saw [m:a] [m:i] [m:left].')
  assert.equal(right.output_text, 'Saw [m:a] [m:i] [m:right].')
  const branches = await t.branches()
  assert.deepEqual(branches.map(b => b.length), [4, 4])
  for (const m of ['left', 'right']) {
    assert(branches.some(b => b[2] === `user: Two [m:${m}]` && b[3] === saw('a', 'i', m)))
  }
})

test('a stream', async () => {
  const { t, ai } = client()
  const stream = ai.responses.stream({ model, input: 'Hello [m:a]' })
  let text = ''
  stream.on('response.output_text.delta', e => (text += e.delta))
  const final = await stream.finalResponse()
  assert.equal(text, 'Saw [m:a].')
  assert.equal(final.output_text, text)
  assert.deepEqual(await t.branches(), [['user: Hello [m:a]', saw('a')]])
})

test('a call and its result', async () => {
  const { t, ai } = client()
  const stream = ai.responses.stream({ model, input: 'What is the weather? [m:a]', tools: [weather] })
  const first = await stream.finalResponse()
  const call = first.output.find(i => i.type === 'function_call')
  assert.deepEqual([call.name, call.arguments, call.status], ['get_weather', '{"city":"Oslo"}', 'completed'])
  const next = await ai.responses.create({ model, previous_response_id: first.id, tools: [weather],
    input: [{ type: 'function_call_output', call_id: call.call_id, output: '7 degrees [m:r]' }] })
  assert.equal(next.output_text, 'Saw [m:a] [m:r].')
  assert.deepEqual(await t.branches(), [['user: What is the weather? [m:a]', 'assistant: get_weather{"city":"Oslo"}', 'tool: 7 degrees [m:r]', saw('a', 'r')]])
})

test('structured output', async () => {
  const { ai } = client()
  const r = await ai.responses.parse({ model, input: 'Where?', text: { format: zodTextFormat(z.object({ city: z.string(), degrees: z.number() }), 'place') } })
  assert.deepEqual(r.output_parsed, { city: 'Oslo', degrees: 7 })
})

test('a response is read again, and its stream too', async () => {
  const { ai } = client()
  const events = []
  for await (const e of await ai.responses.create({ model, input: 'Hello [m:a]', stream: true })) events.push(e)
  const done = events.at(-1).response
  assert.deepEqual((await ai.responses.retrieve(done.id)).output, done.output)
  const again = []
  for await (const e of await ai.responses.retrieve(done.id, { stream: true })) again.push(e)
  assert.deepEqual(again.at(-1).response, done)
  assert.deepEqual(again.map(e => e.sequence_number), again.map((_, i) => i))
  const rest = []
  for await (const e of await ai.responses.retrieve(done.id, { stream: true, starting_after: 3 })) rest.push(e.sequence_number)
  assert.equal(rest[0], 4)
  const final = await ai.responses.stream({ response_id: done.id }).finalResponse()
  assert.equal(final.output_text, 'Saw [m:a].')
})

test('input items', async () => {
  const { ai } = client()
  const first = await ai.responses.create({ model, input: [{ role: 'developer', content: 'Rules [m:d]' }, { role: 'user', content: 'One [m:a]' }] })
  const second = await ai.responses.create({ model, previous_response_id: first.id, input: 'Two [m:b]' })
  const texts = []
  for await (const item of ai.responses.inputItems.list(second.id, { limit: 1, order: 'asc' })) texts.push(item.content[0].text)
  assert.deepEqual(texts, ['Rules [m:d]', 'One [m:a]', 'Saw [m:d] [m:a].', 'Two [m:b]'])
})

test('in the background, and cancelled', async () => {
  const { t, ai } = client()
  let r = await ai.responses.create({ model, input: 'Hello [m:a]', background: true })
  assert.match(r.status, /queued|in_progress|completed/)
  while (r.status === 'queued' || r.status === 'in_progress') r = await ai.responses.retrieve(r.id)
  assert.equal(r.output_text, 'Saw [m:a].')
  let slow = await ai.responses.create({ model, previous_response_id: r.id, input: 'Now slowly', background: true })
  slow = await ai.responses.cancel(slow.id)
  while (slow.status === 'queued' || slow.status === 'in_progress') slow = await ai.responses.retrieve(slow.id)
  assert.equal(slow.status, 'cancelled')
  assert.equal((await ai.responses.cancel(slow.id)).status, 'cancelled')
  assert.equal((await t.branches())[0][0], 'user: Hello [m:a]')
})

test('a compaction, whose output is the next input', async () => {
  const { t, ai } = client()
  let last
  for (let i = 0; i < 6; i++) {
    last = await ai.responses.create({ model, previous_response_id: last?.id, input: `Number ${i} is ${'remarkable '.repeat(60)} [m:n${i}]` })
  }
  const compacted = await ai.responses.compact({ model, previous_response_id: last.id })
  assert.equal(compacted.object, 'response.compaction')
  assert.equal(compacted.output.at(-1).type, 'compaction')
  const next = await ai.responses.create({ model, input: [...compacted.output, { role: 'user', content: 'And now? [m:z]' }] })
  assert.match(next.output_text, /\[m:z\]/)
  assert((await t.everything()).some(b => b.at(-2) === 'user: And now? [m:z]'))
})

test('the tokens of an input', async () => {
  const { t, ai } = client()
  const few = await ai.responses.inputTokens.count({ model, input: 'Hello' })
  const many = await ai.responses.inputTokens.count({ model, input: 'Hello '.repeat(100) })
  assert(few.input_tokens > 0 && many.input_tokens > few.input_tokens + 90)
  assert.deepEqual(await t.everything(), [])
})

test('a conversation and its items', async () => {
  const { ai } = client()
  const c = await ai.conversations.create({ metadata: { topic: 'trees' }, items: [{ type: 'message', role: 'user', content: 'Zero [m:n0]' }] })
  for (let i = 1; i < 6; i++) {
    await ai.conversations.items.create(c.id, { items: [{ type: 'message', role: i % 2 ? 'assistant' : 'user', content: `Item [m:n${i}]` }] })
  }
  const ids = []
  for await (const item of ai.conversations.items.list(c.id, { limit: 3, order: 'asc' })) ids.push(item.id)
  assert.equal(ids.length, 6)
  assert.equal(new Set(ids).size, 6)
  const one = await ai.conversations.items.retrieve(ids[2], { conversation_id: c.id })
  assert.equal(one.content[0].text, 'Item [m:n2]')
  const after = await ai.conversations.items.delete(ids[5], { conversation_id: c.id })
  assert.equal(after.id, c.id)
  const left = []
  for await (const item of ai.conversations.items.list(c.id, { order: 'asc' })) left.push(item.id)
  assert.deepEqual(left, ids.slice(0, 5))
  assert.deepEqual((await ai.conversations.update(c.id, { metadata: { topic: 'woods' } })).metadata, { topic: 'woods' })
  assert.deepEqual((await ai.conversations.retrieve(c.id)).metadata, { topic: 'woods' })
  assert.equal((await ai.conversations.delete(c.id)).deleted, true)
  await assert.rejects(ai.conversations.retrieve(c.id), NotFoundError)
})

test('twenty turns at once on one conversation', async () => {
  const { t, ai } = client()
  const c = await ai.conversations.create({})
  const first = await ai.responses.create({ model, conversation: c.id, input: 'First [m:a]' })
  assert.deepEqual(first.conversation, { id: c.id })
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ai.responses.create({ model, conversation: c.id, input: `Turn [m:t${i}]` })))
  for (const [i, a] of answers.entries()) {
    assert.match(a.output_text, /^Saw \[m:a\] .*\./)
    assert(a.output_text.includes(`[m:t${i}]`))
  }
  const stored = (await t.branches()).flat()
  for (let i = 0; i < 20; i++) assert(stored.includes(`user: Turn [m:t${i}]`), `turn ${i} is lost`)
})

test('what is deleted, absent or wrong', async () => {
  const { ai } = client()
  const r = await ai.responses.create({ model, input: 'Hello [m:a]' })
  await ai.responses.delete(r.id)
  await assert.rejects(ai.responses.retrieve(r.id), NotFoundError)
  await assert.rejects(ai.responses.create({ model, previous_response_id: r.id, input: 'x' }), e => e instanceof BadRequestError && e.code === 'previous_response_not_found' && e.param === 'previous_response_id')
  await assert.rejects(ai.responses.create({ input: 'x' }), e => e instanceof BadRequestError && e.param === 'model')
  const other = client()
  const theirs = await other.ai.responses.create({ model, input: 'Secret [m:s]' })
  await assert.rejects(ai.responses.retrieve(theirs.id), NotFoundError)
})

test('nothing is stored where the client says so', async () => {
  const { t, ai } = client()
  const r = await ai.responses.create({ model, input: 'Hello [m:a]', store: false })
  assert.equal(r.output_text, 'Saw [m:a].')
  assert.equal(r.store, false)
  assert.deepEqual(await t.everything(), [])
})

test('models', async () => {
  const { ai } = client()
  const names = []
  for await (const m of ai.models.list()) names.push(m.id)
  assert.deepEqual(names, [model])
  assert.equal((await ai.models.retrieve(model)).id, model)
})

test('chat completions keep nothing unless they are told to', async () => {
  const { t, ai } = client()
  const answer = await ai.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello [m:a]' }] })
  assert.equal(answer.choices[0].message.content, 'Saw [m:a].')
  assert.equal(answer.choices[0].finish_reason, 'stop')
  let text = '', usage
  for await (const chunk of await ai.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello [m:b]' }], stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? ''
    usage = chunk.usage ?? usage
  }
  assert.equal(text, 'Saw [m:b].')
  assert(usage.total_tokens > 0)
  assert.deepEqual(await t.everything(), [])
})

test('a history that is sent again is recognized', async () => {
  const { t, ai } = client()
  const ask = async messages => (await ai.chat.completions.create({ model, messages, store: true })).choices[0].message
  const history = [{ role: 'system', content: 'Be brief [m:s]' }, { role: 'user', content: 'One [m:a]' }]
  const one = await ask(history)
  const two = await ask([...history, one, { role: 'user', content: 'Two [m:b]' }])
  await ask([...history, one, { role: 'user', content: 'Two [m:b]' }, two, { role: 'user', content: [{ type: 'text', text: 'Three [m:c]' }] }])
  const path = ['system: Be brief [m:s]', 'user: One [m:a]', saw('s', 'a'), 'user: Two [m:b]', saw('s', 'a', 'b'), 'user: Three [m:c]', saw('s', 'a', 'b', 'c')]
  assert.deepEqual(await t.branches(), [path])
  await ask([...history, one, { role: 'user', content: 'Two, edited [m:d]' }])
  await ask([...history, one, { role: 'user', content: 'Two [m:b]' }]) // regenerated
  const branches = await t.branches()
  assert.equal(branches.length, 3)
  assert(branches.some(b => b.length === 5 && b[3] === 'user: Two, edited [m:d]' && b[4] === saw('s', 'a', 'd')))
  assert.equal(branches.filter(b => b[3] === 'user: Two [m:b]').length, 2)
})

test('a stored completion', async () => {
  const { ai } = client()
  const made = await ai.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello [m:a]' }], store: true, metadata: { topic: 'trees' } })
  assert.equal((await ai.chat.completions.retrieve(made.id)).choices[0].message.content, 'Saw [m:a].')
})
