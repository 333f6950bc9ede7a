// OpenAI's agent framework for JavaScript, in each way that it keeps a history.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agent, OpenAIConversationsSession, OpenAIProvider, OpenAIResponsesCompactionSession, MemorySession, Runner, setTracingDisabled, tool } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { model, saw, tenant } from './coppice.mjs'

setTracingDisabled(true)

const setup = () => {
  const t = tenant()
  const ai = new OpenAI({ apiKey: t.key, baseURL: t.baseURL })
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: ai, useResponses: true }), tracingDisabled: true })
  const agent = new Agent({ name: 'Guide', model, instructions: 'Be brief [m:i]', tools: [tool({
    name: 'get_weather', description: 'The weather of a city', parameters: z.object({ city: z.string() }), execute: async ({ city }) => `7 degrees in ${city} [m:r]`,
  })] })
  return { t, ai, agent, runner, run: (input, options) => runner.run(agent, input, options) }
}

const asked = 'user: What is the weather? [m:a]'
const called = 'assistant: get_weather{"city":"Oslo"}'
const result = 'tool: 7 degrees in Oslo [m:r]'

test('plain: the whole history at each step', async () => {
  const { t, run } = setup()
  const first = await run('What is the weather? [m:a]')
  assert.equal(first.finalOutput, 'Saw [m:i] [m:a] [m:r].')
  const second = await run([...first.history, { role: 'user', content: 'And tomorrow? [m:b]' }])
  assert.equal(second.finalOutput, 'Saw [m:i] [m:a] [m:r] [m:b].')
  assert.deepEqual(await t.branches(), [[asked, called, result, saw('i', 'a', 'r'), 'user: And tomorrow? [m:b]', saw('i', 'a', 'r', 'b')]])
})

test('streamed', async () => {
  const { run } = setup()
  const result = await run('What is the weather? [m:a]', { stream: true })
  let text = ''
  for await (const piece of result.toTextStream()) text += piece
  await result.completed
  assert.equal(text, 'Saw [m:i] [m:a] [m:r].')
})

test('with a conversation id', async () => {
  const { t, ai, run } = setup()
  const { id } = await ai.conversations.create({})
  await run('What is the weather? [m:a]', { conversationId: id })
  const second = await run('And tomorrow? [m:b]', { conversationId: id })
  assert.equal(second.finalOutput, 'Saw [m:i] [m:a] [m:r] [m:b].')
  assert.deepEqual(await t.branches(), [[asked, called, result, saw('i', 'a', 'r'), 'user: And tomorrow? [m:b]', saw('i', 'a', 'r', 'b')]])
})

test('with the previous response', async () => {
  const { t, run } = setup()
  const first = await run('What is the weather? [m:a]')
  const left = await run('And tomorrow? [m:b]', { previousResponseId: first.lastResponseId })
  const right = await run('And yesterday? [m:c]', { previousResponseId: first.lastResponseId })
  assert.equal(left.finalOutput, 'Saw [m:i] [m:a] [m:r] [m:b].')
  assert.equal(right.finalOutput, 'Saw [m:i] [m:a] [m:r] [m:c].')
  const branches = await t.everything()
  assert(branches.some(b => b.at(-2) === 'user: And tomorrow? [m:b]' && !b.includes('user: And yesterday? [m:c]')))
  assert(branches.some(b => b.at(-2) === 'user: And yesterday? [m:c]' && !b.includes('user: And tomorrow? [m:b]')))
})

test('a session of conversations', async () => {
  const { t, ai, run } = setup()
  const session = new OpenAIConversationsSession({ client: ai })
  await run('What is the weather? [m:a]', { session })
  const second = await run('And tomorrow? [m:b]', { session })
  assert.equal(second.finalOutput, 'Saw [m:i] [m:a] [m:r] [m:b].')
  const items = await session.getItems()
  assert.deepEqual(items.map(i => i.type ?? i.role), ['message', 'function_call', 'function_call_result', 'message', 'message', 'message'])
  const id = await session.getSessionId()
  const popped = await session.popItem()
  assert.equal(popped.role, 'assistant')
  assert.equal((await session.getItems()).length, 5)
  const chat = [asked, called, result, saw('i', 'a', 'r'), 'user: And tomorrow? [m:b]']
  const stored = await t.everything()
  assert(stored.some(b => chat.every((line, i) => b[i] === line)), `${id} holds ${JSON.stringify(stored)}`)
  for (const branch of stored) assert.equal(new Set(branch).size, branch.length, `twice in ${branch}`)
  await session.clearSession()
})

test('a session that compacts', async () => {
  const { ai, run } = setup()
  const session = new OpenAIResponsesCompactionSession({ client: ai, model: 'gpt-fake', underlyingSession: new MemorySession(), shouldTriggerCompaction: () => true })
  await run(`One ${'long '.repeat(300)} [m:a]`, { session })
  await run(`Two ${'long '.repeat(300)} [m:b]`, { session })
  const items = await session.getItems()
  assert(items.some(i => i.type === 'compaction'), JSON.stringify(items))
  const third = await run('Three [m:c]', { session })
  assert.match(third.finalOutput, /\[m:c\]/)
})
