// Anthropic's SDK for TypeScript.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from '@anthropic-ai/sdk'
import { model, saw, tenant } from './coppice.mjs'

const client = (more = {}) => {
  const t = tenant()
  return { t, ai: new Anthropic({ apiKey: t.key, baseURL: t.anthropicURL, ...more }) }
}
const max_tokens = 1000
const weather = { name: 'get_weather', description: 'The weather of a city', input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }
const user = content => ({ role: 'user', content })

test('a message', async () => {
  const { t, ai } = client()
  const { data, response, request_id } = await ai.messages.create({ model, max_tokens, system: 'Be brief [m:s]', messages: [user('Hello [m:a]')] }).withResponse()
  assert.deepEqual([data.type, data.role, data.content, data.stop_reason], ['message', 'assistant', [{ type: 'text', text: 'Saw [m:s] [m:a].' }], 'end_turn'])
  assert(data.usage.output_tokens > 0 && data.usage.input_tokens > 0)
  assert.deepEqual(await t.branches(response.headers.get('x-coppice-conversation-id')), [['system: Be brief [m:s]', 'user: Hello [m:a]', saw('s', 'a')]])
  assert(request_id !== undefined)
})

test('a stream', async () => {
  const { t, ai } = client()
  const stream = ai.messages.stream({ model, max_tokens, messages: [user('Hello [m:a]')] })
  let text = ''
  stream.on('text', piece => (text += piece))
  const final = await stream.finalMessage()
  assert.equal(text, 'Saw [m:a].')
  assert.deepEqual([final.content, final.stop_reason], [[{ type: 'text', text }], 'end_turn'])
  assert(final.usage.output_tokens > 0)
  assert.deepEqual(await t.branches(), [['user: Hello [m:a]', saw('a')]])
})

// turn asks, runs the tools that the model calls, and returns the history.
async function turn(ai, history, content, streamed) {
  history = [...history, user([{ type: 'text', text: content, cache_control: { type: 'ephemeral' } }])]
  for (;;) {
    const asked = { model, max_tokens, system: 'Be brief', tools: [weather], messages: history }
    const m = streamed ? await ai.messages.stream(asked).finalMessage() : await ai.messages.create(asked)
    history = [...history, { role: 'assistant', content: m.content }]
    const calls = m.content.filter(b => b.type === 'tool_use')
    assert.equal(m.stop_reason, calls.length ? 'tool_use' : 'end_turn')
    if (!calls.length) return history
    assert.deepEqual(calls.map(c => [c.name, c.input]), [['get_weather', { city: 'Oslo' }]])
    history = [...history, user(calls.map(c => ({ type: 'tool_result', tool_use_id: c.id, content: [{ type: 'text', text: '7 degrees' }] })))]
  }
}

test('eight turns with tools and an edit are one conversation of two branches', async () => {
  const { t, ai } = client({ defaultHeaders: { 'X-Coppice-Session': 'one' } })
  let history = []
  const turns = []
  for (let i = 0; i < 8; i++) {
    turns.push(history)
    history = await turn(ai, history, i % 2 ? `The weather? [m:w${i}]` : `Question [m:q${i}]`, i % 3 === 0)
  }
  await turn(ai, turns[6], 'Edited: the weather? [m:e]', true)
  const branches = await t.branches()
  assert.deepEqual(branches.map(b => b.length), [1 + 4 * 2 + 4 * 4, 1 + 3 * 2 + 3 * 4 + 4])
  const all = branches.flat().filter(line => line.startsWith('user'))
  assert.equal(new Set(all).size, 9)
  assert.deepEqual(branches[0].slice(0, 19), branches[1].slice(0, 19))
})

test('the tool runner', async () => {
  const { t, ai } = client()
  const final = await ai.beta.messages.toolRunner({ model, max_tokens, messages: [user('The weather? [m:a]')], tools: [{ ...weather, run: () => '7 degrees [m:r]', parse: x => x }] })
  assert.equal(final.content[0].text, 'Saw [m:a] [m:r].')
  assert.deepEqual(await t.branches(), [['user: The weather? [m:a]', 'assistant: get_weather{"city":"Oslo"}', 'tool: 7 degrees [m:r]', saw('a', 'r')]])
})

test('tokens and models', async () => {
  const { t, ai } = client()
  const few = await ai.messages.countTokens({ model, messages: [user('Hello')] })
  const many = await ai.messages.countTokens({ model, messages: [user('Hello '.repeat(100))] })
  assert(few.input_tokens > 0 && many.input_tokens > few.input_tokens + 90)
  const ids = []
  for await (const m of ai.models.list()) ids.push(m.id)
  assert.deepEqual(ids, [model])
  assert.equal((await ai.models.retrieve(model)).type, 'model')
  assert.deepEqual(await t.everything(), [])
})

test('what is wrong', async () => {
  const { ai } = client({ maxRetries: 0 })
  const ask = more => ai.messages.create({ model, max_tokens, messages: [user('x')], ...more })
  await assert.rejects(ask({ model: 'oak' }), e => e instanceof NotFoundError && e.error.error.type === 'not_found_error')
  await assert.rejects(ask({ messages: [] }), e => e instanceof BadRequestError && /^messages: /.test(e.error.error.message))
  await assert.rejects(new Anthropic({ apiKey: 'cop_wrong', baseURL: ai.baseURL, maxRetries: 0 }).messages.create({ model, max_tokens, messages: [user('x')] }), AuthenticationError)
})
