import assert from 'node:assert/strict'
import test from 'node:test'
import { diff } from './diff'

const own = (text: string, other: string) => diff(text, other)?.map(p => (p.own ? `[${p.text}]` : p.text)).join('')

test('what the other text lacks is marked', () => {
  assert.equal(own('A wood that is cut.', 'A wood that grows.'), 'A wood that [is][ ][cut].'.replaceAll('][', ''))
  assert.equal(own('the same', 'the same'), 'the same')
  assert.equal(own('', 'x'), '')
  assert.equal(own('x', ''), '[x]')
  assert.equal(own('a b c d', 'b d'), '[a ]b [c ]d')
  assert.equal(diff('word '.repeat(5000), 'x'), null)
})

test('the pieces are the text, and what both have stands in the other one in its order', () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n
  for (let i = 0; i < 300; i++) {
    const make = () => Array.from({ length: random(12) }, () => 'abc'[random(3)]).join(' ')
    const [a, b] = [make(), make()]
    const pieces = diff(a, b)!
    assert.equal(pieces.map(p => p.text).join(''), a)
    let at = 0
    for (const c of pieces.filter(p => !p.own).map(p => p.text).join('')) {
      at = b.indexOf(c, at) + 1
      assert.notEqual(at, 0, `${a} | ${b}`)
    }
  }
})
