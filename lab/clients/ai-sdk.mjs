// Vercel's AI SDK: its provider for OpenAI, and the one for Open Responses.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenResponses } from '@ai-sdk/open-responses'
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import { model, saw, tenant } from './coppice.mjs'

const setup = () => {
  const t = tenant()
  const openai = createOpenAI({ apiKey: t.key, baseURL: t.baseURL })
  return { t, openai, tools: { get_weather: tool({
    description: 'The weather of a city', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `7 degrees in ${city} [m:r]`,
  }) } }
}

test('a text', async () => {
  const { t, openai } = setup()
  const { text, usage } = await generateText({ model: openai(model), prompt: 'Hello [m:a]' })
  assert.equal(text, 'Saw [m:a].')
  assert(usage.totalTokens > 0)
  assert.deepEqual(await t.branches(), [['user: Hello [m:a]', saw('a')]])
})

test('several turns, earlier answers by reference', async () => {
  const { t, openai } = setup()
  const messages = [{ role: 'user', content: 'One [m:a]' }]
  for (const m of ['b', 'c']) {
    const { response } = await generateText({ model: openai(model), messages })
    messages.push(...response.messages, { role: 'user', content: `Next [m:${m}]` })
  }
  const result = streamText({ model: openai(model), messages })
  let text = ''
  for await (const piece of result.textStream) text += piece
  assert.equal(text, 'Saw [m:a] [m:b] [m:c].')
  assert.deepEqual(await t.branches(), [['user: One [m:a]', saw('a'), 'user: Next [m:b]', saw('a', 'b'), 'user: Next [m:c]', saw('a', 'b', 'c')]])
})

test('a tool, in steps', async () => {
  const { t, openai, tools } = setup()
  const { text, steps } = await generateText({ model: openai(model), prompt: 'What is the weather? [m:a]', tools, stopWhen: stepCountIs(4) })
  assert.equal(text, 'Saw [m:a] [m:r].')
  assert.equal(steps.length, 2)
  assert.deepEqual(await t.branches(), [['user: What is the weather? [m:a]', 'assistant: get_weather{"city":"Oslo"}', 'tool: 7 degrees in Oslo [m:r]', saw('a', 'r')]])
})

test('an object', async () => {
  const { openai } = setup()
  const { object } = await generateObject({ model: openai(model), prompt: 'Where?', schema: z.object({ city: z.string(), degrees: z.number() }) })
  assert.deepEqual(object, { city: 'Oslo', degrees: 7 })
})

test('the previous response, and a conversation', async () => {
  const { t, openai } = setup()
  const first = await generateText({ model: openai(model), prompt: 'One [m:a]' })
  const previousResponseId = first.providerMetadata.openai.responseId
  const second = await generateText({ model: openai(model), prompt: 'Two [m:b]', providerOptions: { openai: { previousResponseId } } })
  assert.equal(second.text, 'Saw [m:a] [m:b].')
  assert.deepEqual(await t.branches(), [['user: One [m:a]', saw('a'), 'user: Two [m:b]', saw('a', 'b')]])
})

test('nothing is stored where the client says so', async () => {
  const { t, openai } = setup()
  const { text } = await generateText({ model: openai(model), prompt: 'One [m:a]', providerOptions: { openai: { store: false } } })
  assert.equal(text, 'Saw [m:a].')
  assert.deepEqual(await t.everything(), [])
})

test('chat completions', async () => {
  const { t, openai, tools } = setup()
  const { text } = await generateText({ model: openai.chat(model), prompt: 'What is the weather? [m:a]', tools, stopWhen: stepCountIs(4), providerOptions: { openai: { store: true } } })
  assert.equal(text, 'Saw [m:a] [m:r].')
  assert.deepEqual(await t.branches(), [['user: What is the weather? [m:a]', 'assistant: get_weather{"city":"Oslo"}', 'tool: 7 degrees in Oslo [m:r]', saw('a', 'r')]])
})

test('Open Responses', async () => {
  const { t } = setup()
  const provider = createOpenResponses({ name: 'coppice', apiKey: t.key, url: `${t.baseURL}/responses` })
  const result = streamText({ model: provider(model), prompt: 'Hello [m:a]' })
  let text = ''
  for await (const piece of result.textStream) text += piece
  assert.equal(text, 'Saw [m:a].')
  assert.deepEqual(await t.branches(), [['user: Hello [m:a]', saw('a')]])
})
