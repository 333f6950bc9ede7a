import assert from 'node:assert/strict'
import test from 'node:test'
import type { Message } from '../api/types'
import { blocks, fences, marked } from './blocks'
import { attachments, calls, said, textOf } from './content'
import { count, nameOf, period, short, when } from './format'
import { found } from './found'
import { Growing } from './growing'
import { endingOf, modelOf } from './mark'

const message = (change: Partial<Message>) => ({ metadata: {}, ...change }) as Message

test('text that is added at the end changes the last block only', () => {
  const text = Array.from({ length: 8 }, (_, i) => `Paragraph ${i}: ${'word '.repeat(80)}`).join('\n\n')
  const before = blocks(text)
  const after = blocks(text + ' and more')
  assert.ok(before.length > 1)
  assert.deepEqual(after.slice(0, -1).map(b => b.key), before.slice(0, -1).map(b => b.key))
  assert.notEqual(after.at(-1)!.key, before.at(-1)!.key)
  assert.equal(blocks(text).map(b => b.text).join(''), text)
})

test('HTML in a message is shown as it was written', () => {
  const html = marked.parse('<script>alert(1)</script>\n\na <b>bold</b> word<br>and a line') as string
  assert.ok(!/<script|<b>/.test(html))
  assert.ok(html.includes('&lt;script&gt;') && html.includes('<br>'))
})

test('an image that is not in the message becomes a link', () => {
  assert.match(marked.parse('![x](https://example.org/a.png)') as string, /<a href/)
  assert.match(marked.parse('![x](data:image/png;base64,AAAA)') as string, /<img src/)
})

test('fences separates code from what was typed around it', () => {
  const parts = fences('before\n\n```js\nlet a\n```\n\n# no heading')
  assert.equal(parts.length, 3)
  assert.deepEqual(parts.map(p => ('text' in p ? p.text : 'code')), ['before', 'code', '# no heading'])
  assert.deepEqual(fences('  \n'), [])
})

test('a content is its text parts, and what it attaches', () => {
  assert.equal(textOf(null), '')
  assert.equal(textOf([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]), 'a\n\nb')
  assert.equal(said({ content: null, refusal: 'no' }), 'no')
  assert.deepEqual(attachments([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }, { type: 'file', file: { filename: 'a.pdf' } }, { type: 'input_audio' }]), [
    { name: 'image', image: 'data:image/png;base64,AA' }, { name: 'a.pdf' }, { name: 'audio' },
  ])
  assert.equal(calls({ tool_calls: [{ id: '1', function: { name: 'f', arguments: '{}' } }, { id: '2' }] }), 'calls f, a tool')
  assert.equal(calls({ tool_calls: null }), '')
})

test('words that were searched for are found whole, case aside', () => {
  const matches = (text: string, query: string) => found(text, query).filter(s => s.match).map(s => s.text)
  assert.deepEqual(matches('Hazel and hazelnut, HAZEL', 'hazel -nut '), ['Hazel', 'HAZEL'])
  assert.deepEqual(matches('Hazel and hazelnut, HAZEL', '"hazel"'), ['Hazel', 'HAZEL'])
  assert.deepEqual(matches('Äpfel äpfel', 'äpfel OR birnen'), ['Äpfel', 'äpfel'])
  assert.deepEqual(found('text', '-only'), [{ text: 'text', match: false }])
  assert.equal(found('a (b) c', 'b').map(s => s.text).join(''), 'a (b) c')
})

test('the last word may be the beginning of one', () => {
  const matches = (text: string, query: string) => found(text, query).filter(s => s.match).map(s => s.text)
  assert.deepEqual(matches('A rate limiter limits the rated rate.', 'rate lim'), ['rate', 'limiter', 'limits', 'rate'])
  assert.deepEqual(matches('Hazel and hazelnut', 'hazel'), ['Hazel', 'hazelnut'])
  assert.deepEqual(matches('anything', ' '), [])
})

test('numbers and periods are for people', () => {
  assert.deepEqual([0, 999, 1000, 1900, 99_960, 1_250_000].map(short), ['0', '999', '1k', '1.9k', '100k', '1.3M'])
  assert.equal(count(1, 'leaf', 'leaves'), '1 leaf')
  assert.equal(count(2000, 'message'), '2,000 messages')
  const now = new Date(2026, 2, 15, 12)
  const at = (day: number) => period(new Date(2026, 2, day, 23).toISOString(), now)
  assert.deepEqual([at(15), at(14), at(9)], ['Today', 'Yesterday', 'Last 7 days'])
})

test('a time of another year says so', () => {
  const now = new Date(2026, 2, 15, 12)
  assert.ok(when(new Date(2024, 5, 1, 9).toISOString(), now).includes('2024'))
  assert.ok(!when(new Date(2026, 0, 1, 9).toISOString(), now).includes('2026'))
  assert.match(when(new Date(2026, 2, 15, 9, 5).toISOString(), now), /^0?9[:.]05/)
})

test('a message tells how its reply ended, and what wrote it', () => {
  assert.equal(endingOf(message({})), null)
  assert.equal(endingOf(message({ metadata: { reply: { status: 'completed' } } })), null)
  assert.deepEqual(endingOf(message({ metadata: { reply: { status: 'failed', code: 'model_timeout' } } })), { kind: 'failed', detail: 'the model took too long' })
  assert.deepEqual(endingOf(message({ metadata: { reply: { status: 'stopped' } } })), { kind: 'stopped', detail: '' })
  assert.equal(modelOf(message({ metadata: { reply: { model: 'a' }, model: 'b' } })), 'a')
  assert.equal(modelOf(message({ metadata: { model: 5 } })), null)
  assert.equal(modelOf(message({ metadata: { source: { model: 'c' } } })), 'c')
})

test('formulas keep their backslashes, and prices are none', () => {
  const html = (text: string) => marked.parse(text) as string
  assert.equal(html('a \\(x^2\\) b'), '<p>a <span class="math">\\(x^2\\)</span> b</p>\n')
  assert.equal(html('\\[\nx < y\n\\]\n\nb'), '<div class="math math-display">\\[\nx &lt; y\n\\]</div><p>b</p>\n')
  assert.equal(html('a\n$$\nx\n$$'), '<p>a</p>\n<div class="math math-display">$$\nx\n$$</div>')
  assert.match(html('see $$x$$ here'), /<span class="math math-display">\$\$x\$\$<\/span>/)
  assert.equal(html('so $E = mc^2$, and $5 or $10'), '<p>so <span class="math">$E = mc^2$</span>, and $5 or $10</p>\n')
  for (const none of ['$5 and $7', '$5 and $10', '$ x$', '$x $', '$a\n\nb$', '\\$a$', '`$x$`', 'in $HOME and $PATH', '`\\(x\\)`', '\\(x', '$$', '$$ $$', '\\[a\n\nb\\]', '```\n$$x$$\n```']) assert.doesNotMatch(html(none), /class="math/, none)
})

test('footnotes are numbers, and stand where they were written', () => {
  assert.equal(marked.parse('Hazel[^1], and oak.[^b]\n\n[^1]: A *shrub*,\nmostly.\n[^b]: A tree.\n\nEnd'),
    '<p>Hazel<sup>1</sup>, and oak.<sup>b</sup></p>\n<p><sup>1</sup> A <em>shrub</em>,<br>mostly.</p>\n<p><sup>b</sup> A tree.</p>\n<p>End</p>\n')
})

/** pieces are what Markdown is made of, to be put together at random. */
const pieces = ['# Title\n', '- item\n', '- item\n\n', '  more of it\n', '1. one\n2. two\n', 'A paragraph with **bold** and `code`. ', 'word ', '\n', '\n\n', '> quoted\n', '| a | b |\n|---|---|\n| 1 | 2 |\n',
  '```go\nfunc f() {}\n```\n', '```\n', '~~~~\n', '    indented\n', 'Title\n===\n', '---\n', '$$x$$', '\n\\[\ny\n\\]\n', '<b>\n', '[a]: https://example.org\n\n', '[a] ', 'so[^1] ', '[^1]: a note\n', 'x'.repeat(300) + '\n', 'long line. '.repeat(40) + '\n\n', '\r\n', '\t- sub\n']

test('a text that grows is taken apart as the whole text is', () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  for (let round = 0; round < 300; round++) {
    let text = ''
    const grower = new Growing()
    for (let i = 0; i < 60; i++) {
      const piece = pieces[random(pieces.length)]!
      const cut = random(piece.length + 1)
      for (const part of [piece.slice(0, cut), piece.slice(cut)]) {
        text += part
        const seen = grower.blocks(text)
        assert.equal(seen.map(b => b.text).join(''), blocks(text).map(b => b.text).join(''), JSON.stringify(text))
      }
    }
    const html = (all: { tokens: unknown[]; text: string; body?: number }[]) => all.filter(b => b.body === undefined).map(b => marked.parser(b.tokens as never)).join('')
    const seen = grower.blocks(text)
    const whole = blocks(text)
    if (grower.whole(seen)) assert.deepEqual(seen.map(b => b.key), whole.map(b => b.key), JSON.stringify(text))
    if (!text.includes('[a]')) { // an address may come after its use: the stored message is read as a whole
      if (seen.some(b => b.body !== undefined)) assert.equal(seen.at(-1)!.tokens[0]!.type, 'code')
      else assert.equal(html(seen), html(whole), JSON.stringify(text))
    }
  }
})

test('what is streamed is read once, but for its last blocks', () => {
  for (const unit of ['A paragraph of some words, **bold** and `code`.\n\n', '```go\n' + 'func f() { return }\n'.repeat(400) + '```\n\n', '- an item\n\nand then\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n']) {
    const text = unit.repeat(Math.ceil(100_000 / unit.length))
    const grower = new Growing()
    for (let end = 40; end < text.length; end += 40) grower.blocks(text.slice(0, end))
    assert.ok(grower.work < 100 * text.length, `${grower.work / text.length} times the text`)
  }
})

test('a conversation without a title is new for a minute', () => {
  const now = new Date('2026-11-23T12:00:00Z')
  const name = (title: string, created_at: string) => nameOf({ title, created_at }, now)
  assert.equal(name('', '2026-11-23T11:59:30Z'), 'New conversation')
  assert.equal(name('', '2026-11-23T11:58:00Z'), 'Untitled')
  assert.equal(name('Oslo', '2026-11-23T11:59:30Z'), 'Oslo')
})
