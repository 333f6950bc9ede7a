// LangChain's model of OpenAI, over Responses and over chat completions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { z } from 'zod'
import { model, saw, tenant } from './coppice.mjs'

const setup = options => {
  const t = tenant()
  return { t, chat: new ChatOpenAI({ model, apiKey: t.key, configuration: { baseURL: t.baseURL }, ...options }) }
}

const weather = tool(async ({ city }) => `7 degrees in ${city} [m:r]`, { name: 'get_weather', description: 'The weather of a city', schema: z.object({ city: z.string() }) })

const history = async (t, chat) => {
  const messages = [new SystemMessage('Be brief [m:s]'), new HumanMessage('What is the weather? [m:a]')]
  const call = await chat.invoke(messages)
  assert.equal(call.tool_calls[0].name, 'get_weather')
  const result = await weather.invoke(call.tool_calls[0])
  assert(result instanceof ToolMessage)
  const answer = await chat.invoke([...messages, call, result])
  assert(answer instanceof AIMessage)
  assert.equal(answer.text, 'Saw [m:s] [m:a] [m:r].')
  const longest = (await t.everything()).sort((a, b) => b.length - a.length)[0]
  assert.deepEqual(longest, ['system: Be brief [m:s]', 'user: What is the weather? [m:a]', 'assistant: get_weather{"city":"Oslo"}', 'tool: 7 degrees in Oslo [m:r]', saw('s', 'a', 'r')])
}

test('responses: a call and its result, in full', async () => {
  const { t, chat } = setup({ useResponsesApi: true })
  await history(t, chat.bindTools([weather]))
})

test('responses: the previous response', async () => {
  const { t, chat } = setup({ useResponsesApi: true })
  const first = await chat.invoke('One [m:a]')
  const second = await chat.invoke('Two [m:b]', { previous_response_id: first.response_metadata.id })
  assert.equal(second.text, 'Saw [m:a] [m:b].')
  assert.deepEqual(await t.branches(), [['user: One [m:a]', saw('a'), 'user: Two [m:b]', saw('a', 'b')]])
})

test('responses: a stream', async () => {
  const { chat } = setup({ useResponsesApi: true })
  let text = ''
  for await (const chunk of await chat.stream('Hello [m:a]')) text += chunk.text
  assert.equal(text, 'Saw [m:a].')
})

test('chat completions: a call and its result are recognized', async () => {
  const { t, chat } = setup({ useResponsesApi: false, modelKwargs: { store: true } })
  await history(t, chat.bindTools([weather]))
  assert.equal((await t.branches()).length, 1)
})

test('chat completions: a stream', async () => {
  const { chat } = setup({ useResponsesApi: false })
  let text = ''
  for await (const chunk of await chat.stream('Hello [m:a]')) text += chunk.text
  assert.equal(text, 'Saw [m:a].')
})
