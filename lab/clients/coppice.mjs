// What the scripts share: a tenant for each test, and the native API, by which a
// test reads what the tree holds.
import assert from 'node:assert/strict'

const url = process.env.COPPICE_URL
const keys = process.env.COPPICE_KEYS.split(',')

export const model = 'gpt-fake'

// tenant is one that has nothing yet: where its client connects, and what it
// stored.
export function tenant() {
  const key = keys.shift()
  assert(key, 'more tests than tenants')
  const get = async path => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
    assert.equal(answer.status, 200, `${path}: ${answer.status}`)
    return answer.json()
  }
  const all = async path => {
    const data = []
    for (let cursor = ''; cursor !== null; ) {
      const page = await get(`${path}?limit=100${cursor && `&cursor=${cursor}`}`)
      data.push(...page.data)
      cursor = page.next_cursor
    }
    return data
  }
  const t = {
    key,
    baseURL: `${url}/openai/v1`,
    anthropicURL: `${url}/anthropic`,
    get,
    conversations: () => all('/v1/conversations'),
    // branches of a conversation, or of the only one: each as its messages from
    // the root to the leaf, in the order in which the leaves were made.
    async branches(id) {
      if (!id) {
        const found = await t.conversations()
        assert.equal(found.length, 1, `${found.length} conversations where one was expected`)
        id = found[0].id
      }
      const leaves = await all(`/v1/conversations/${id}/branches`)
      const lines = await Promise.all(leaves.map(async leaf => {
        let messages = []
        for (let cursor = ''; cursor !== null; ) {
          const page = await get(`/v1/conversations/${id}/branches/${leaf.id}/transcript?limit=100${cursor && `&cursor=${cursor}`}`)
          messages = [...page.data, ...messages]
          cursor = page.next_cursor
        }
        return messages.map(line)
      }))
      return lines.reverse()
    },
    // everything that is stored, as one list of branches.
    async everything() {
      return (await Promise.all((await t.conversations()).reverse().map(c => t.branches(c.id)))).flat()
    },
  }
  return t
}

// line is a message in short: "user: hello", "assistant: get_weather{…}".
function line(m) {
  const text = typeof m.content === 'string' ? m.content : (m.content ?? []).map(p => p.text ?? `[${p.type}]`).join('')
  const calls = (m.tool_calls ?? []).map(c => c.function.name + c.function.arguments).join(' ')
  return `${m.role}: ${[text, calls].filter(Boolean).join(' ')}`
}

// saw is the line of an answer whose model was shown these marks.
export const saw = (...marks) => `assistant: Saw ${marks.map(m => `[m:${m}]`).join(' ')}.`
