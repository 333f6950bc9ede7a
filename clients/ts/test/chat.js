// What a user does with an example chat. Each step gives "done", or tells what it
// waited for and what the page showed. KEY is the server's, SAID the model's
// answer; of the answer to a question that has "hang" comes the beginning.
const BEGUN = 'This nev'
const api = async (path, method = 'GET') => {
  const answer = await fetch('/v1/conversations' + path, { method, headers: { Authorization: 'Bearer ' + KEY } })
  return answer.ok ? answer.json() : { status: answer.status }
}
const id = () => location.hash.slice(1)
const branch = async () => (await api(`/${id()}/branches/active/transcript`)).data?.map(m => m.content) ?? []
const shown = selector => [...document.querySelectorAll(selector)].map(e => e.innerText.trim())
const texts = () => shown('.messages .text').map(t => t.replace(/\s*●$/, '')) // which assistant-ui puts after what is on its way
const versions = () => shown('.version').map(v => v.replace(/\s+/g, ' '))
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

if (!window.failures) {
  window.failures = []
  addEventListener('error', e => window.failures.push(e.error?.stack ?? e.message))
  addEventListener('unhandledrejection', e => window.failures.push(String(e.reason)))
  for (const level of ['error', 'warn']) console[level] = (...args) => window.failures.push(args.map(String).join(' '))
}

async function until(what, holds) {
  for (const begin = Date.now(); ; await new Promise(done => setTimeout(done, 50))) {
    if (await holds()) return
    if (Date.now() - begin > 60_000) throw new Error(`${what} didn't come; failures ${JSON.stringify(window.failures)}; the page shows ${JSON.stringify(document.body.innerText)}, the branch is ${JSON.stringify(await branch())}`)
  }
}

const button = (name, nth = 0) => [...document.querySelectorAll('button')].filter(b => b.innerText.trim() === name || b.ariaLabel === name).at(nth)
const ready = name => until(`the button ${name}`, () => button(name) && !button(name).disabled)
async function press(name, nth = 0) {
  await until(`the button ${name}`, () => button(name, nth) && !button(name, nth).disabled)
  button(name, nth).click()
}
async function write(label, text) {
  const field = () => document.querySelector(`textarea[aria-label="${label}"]`)
  await until(`the field ${label}`, field)
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(field(), text)
  field().dispatchEvent(new Event('input', { bubbles: true }))
}

async function talk() {
  await write('Message', 'Which apples keep?')
  await press('Send')
  await until('the answer', () => same(texts(), ['Which apples keep?', SAID]))
  await ready('Regenerate')
  await until('the stored branch', async () => same(await branch(), ['Which apples keep?', SAID]))
  return 'done'
}

async function edit() {
  await press('Edit')
  await write(document.querySelector('textarea[aria-label="Edit"]') || document.querySelector('aside') ? 'Edit' : 'Message', 'Which pears keep?')
  await press('Save')
  await until('the edited branch', () => same(texts(), ['Which pears keep?', SAID]))
  await until('2 of 2', () => same(versions(), ['2 of 2']))
  await until('the stored branch', async () => same(await branch(), ['Which pears keep?', SAID]))
  return 'done'
}

async function switchBack() {
  await press('Previous version')
  await until('the first branch', () => same(texts(), ['Which apples keep?', SAID]) && same(versions(), ['1 of 2']))
  await until('the active head', async () => same(await branch(), ['Which apples keep?', SAID]))
  return 'done'
}

async function regenerate() {
  await press('Regenerate')
  await until('another answer', () => same(versions(), ['1 of 2', '2 of 2']) && same(texts(), ['Which apples keep?', SAID]))
  await until('three branches', async () => (await api(`/${id()}/branches`)).data.length === 3)
  return 'done'
}

async function hang() {
  await ready('Regenerate')
  await write('Message', 'Please hang')
  await press('Send')
  await until('a beginning', () => texts().at(-1) === BEGUN)
  await until('the stored question', async () => (await branch()).at(-1) === 'Please hang')
  return 'done'
}

async function resume() {
  await until('the answer on its way', () => texts().at(-1) === BEGUN && texts().length === 4)
  await press('Stop')
  await until('the button Send', () => button('Send'))
  await until('the stopped answer', async () => (await branch()).at(-1) === BEGUN && texts().at(-1) === BEGUN)
  return 'done'
}

/** threads are assistant-ui's. */
async function threads() {
  if (!document.querySelector('aside')) return 'done'
  const old = id()
  await press('Delete', 1)
  await until('the pruned branch', async () => same(texts(), ['Which apples keep?', SAID]) && same(await branch(), ['Which apples keep?', SAID]))
  await press('New chat')
  await until('an empty thread', () => id() === '' && texts().length === 0)
  await write('Message', 'What grows fastest?')
  await press('Send')
  await until('the answer', () => same(texts(), ['What grows fastest?', SAID]))
  await until('both threads', () => shown('.item').length === 2)
  await press('Which apples keep?')
  await until('the first thread', () => id() === old && same(texts(), ['Which apples keep?', SAID]))
  await press('Delete chat', [...document.querySelectorAll('.item')].findIndex(e => e.innerText.includes('Which apples keep?')))
  await until('one thread', () => shown('.item').length === 1 && id() === '')
  if ((await api('/' + old)).status !== 404) throw new Error('the conversation is still there')
  return 'done'
}
