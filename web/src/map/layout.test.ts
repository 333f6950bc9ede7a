import assert from 'node:assert/strict'
import test from 'node:test'
import { build, type Forest } from '../state/forest'
import { message, summary } from '../state/forest.testing'
import { between, diamondAt, find, lay, type Layout, rowHeight, type Spot, spotOf } from './layout'
import { folded, outline, runOf, type Shape } from './outline'
import { whole } from './view'

const shape = (change: Partial<Shape> = {}): Shape => ({ opened: new Set(), closed: new Set(), spread: new Set(), everything: false, head: null, ...change })
const line = (n: number) => Array.from({ length: n }, (_, i) => message(`m${i}`, i ? `m${i - 1}` : null))
const ids = (f: Forest, s: Shape) => outline(f, s).map(function walk(i): unknown[] { return [i.knot.id, i.count, ...i.children.map(walk)] })

test('a long unbranched run is one item', () => {
  const f = build('x', line(10))
  // The root and the last message are not part of it: something happens at both.
  assert.deepEqual(ids(f, shape()), [['m0', 1, ['m1', 8, ['m9', 1]]]])
  const run = outline(f, shape())[0]!.children[0]!
  assert.deepEqual(runOf(run), ['m8', 'm7', 'm6', 'm5', 'm4', 'm3', 'm2', 'm1'])
})

test('a run ends at the head and at a summary’s anchor and cutoff', () => {
  const f = build('x', [...line(10), summary('s', 'm5', 'm3')])
  assert.deepEqual(ids(f, shape({ head: 'm7' })), [['m0', 1, ['m1', 1, ['m2', 1, ['m3', 1, ['m4', 1, ['m5', 1, ['m6', 1, ['m7', 1, ['m8', 1, ['m9', 1]]]]]]]]]]])
})

test('a closed item hides what is below it, and an opened run is drawn whole', () => {
  const f = build('x', line(10))
  assert.deepEqual(ids(f, shape({ closed: new Set(['m0']) })), [['m0', 1]])
  assert.equal(outline(f, shape({ closed: new Set(['m0']) }))[0]!.hidden, 9)
  assert.equal(JSON.stringify(ids(f, shape({ everything: true }))).match(/m/g)!.length, 10)
})

test('a tree of any depth is laid out, a row for each depth', () => {
  const f = build('x', [...line(3000), message('side', 'm0')])
  const layout = lay(outline(f, shape({ everything: true })))
  assert.equal(layout.rows.length, 3000)
  assert.equal(layout.bounds.bottom, 2999 * rowHeight)
  const two = layout.rows[1]!
  assert.equal(two.length, 2)
  assert.ok(two[0]!.x < two[1]!.x)
  assert.equal(spotOf(layout, ['m0', 'nobody'], 1)?.item.knot.id, 'm0')
  assert.equal(spotOf(layout, [], 3), null)
})

test('the branch goes straight down, and what parts from it leans to the right', () => {
  const f = build('x', [message('r', null), message('a', 'r'), message('a1', 'a'), message('a2', 'a'), message('b', 'r'), message('b1', 'b'), message('b2', 'b1')])
  const { rows } = lay(outline(f, shape({ everything: true, head: 'b2' })), new Set(['r', 'b', 'b1', 'b2']))
  assert.deepEqual(rows.map(row => row.map(s => `${s.item.knot.id} ${s.x}`)), [['r 0'], ['b 0', 'a 32'], ['b1 0', 'a1 32', 'a2 64'], ['b2 0']])
})

test('subtrees stand beside one another without touching', () => {
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  const nodes = Array.from({ length: 2000 }, (_, i) => message(`m${i}`, i ? `m${Math.max(0, i - 1 - random(9))}` : null))
  const { rows, byItem } = lay(outline(build('x', nodes), shape({ everything: true })))
  for (const row of rows) for (const [i, spot] of row.entries()) if (i > 0) assert.ok(spot.x - row[i - 1]!.x >= 32, `${spot.item.knot.id} touches ${row[i - 1]!.item.knot.id}`)
  for (const spot of byItem.values()) assert.ok(spot.x >= (spot.parent?.x ?? 0))
  assert.equal(byItem.size, 2000)
})

test('between is the part of a row from one x to another', () => {
  const row = [0, 10, 20, 30].map(x => ({ x }) as Spot)
  assert.deepEqual(between(row, 10, 30).map(s => s.x), [10, 20])
  assert.deepEqual(between(row, 31, 99), [])
})

test('find gives the nearest message or summary within reach', () => {
  const f = build('x', [...line(3), summary('s', 'm1', 'm0')])
  const layout = lay(outline(f, shape({ everything: true })))
  const spot = layout.byItem.get('m1')!
  assert.equal(find(layout, spot.x + 1, spot.y, 10)?.spot.item.knot.id, 'm1')
  const at = diamondAt(spot, 0)
  assert.equal(find(layout, at.x, at.y, 10)?.fold?.id, 's')
  assert.equal(find(layout, spot.x + 500, spot.y, 10), null)
})

test('a summary folds its path but for the leading system messages', () => {
  const f = build('x', [message('sys', null, 'system'), message('u', 'sys'), message('a', 'u', 'assistant'), summary('s', 'a', 'u')])
  assert.deepEqual([...folded(f.folds.get('s')!)], ['u'])
})

test('a large family is gathered, but for the first, the newest and the one on the branch', () => {
  const family = Array.from({ length: 3000 }, (_, i) => message(`c${i}`, 'root'))
  const f = build('x', [message('root', null), ...family, message('below', 'c1500')])
  const drawn = (s: Shape) => outline(f, s)[0]!.children
  const gathered = drawn(shape({ head: 'below' }))
  assert.deepEqual(gathered.map(i => i.gathered || i.knot.id), ['c0', 1499, 'c1500', 1493, 'c2994', 'c2995', 'c2996', 'c2997', 'c2998', 'c2999'])
  assert.equal(drawn(shape()).find(i => i.gathered)!.hidden, 2994)
  // Nothing is lost: what stands for how many messages adds up to all of them.
  const all = (items: ReturnType<typeof drawn>): number => items.reduce((n, i) => n + (i.gathered ? i.hidden : i.count + i.hidden + all(i.children)), 0)
  assert.equal(all(outline(f, shape({ head: 'below' }))), 3002)
  assert.equal(drawn(shape({ spread: new Set(['root']) })).length, 3000)
  assert.ok(build('x', Array.from({ length: 12 }, (_, i) => message(`r${i}`, null))).roots.length === outline(build('x', Array.from({ length: 12 }, (_, i) => message(`r${i}`, null))), shape()).length)
})

test('the whole map fits, whatever its size', () => {
  for (const [rows, columns] of [[10_000, 1], [1, 3000], [40, 40]] as const) {
    const layout = { bounds: { left: 0, right: columns * 32, top: 0, bottom: rows * rowHeight } } as Layout
    const size = { width: 376, height: 700 }
    const v = whole(layout, size)
    for (const [x, y] of [[0, 0], [columns * 32, rows * rowHeight]] as const) {
      const [sx, sy] = [x * v.zoom + v.left, y * v.zoom + v.top]
      assert.ok(sx >= 0 && sx <= size.width && sy >= 0 && sy <= size.height, `${rows} by ${columns}: ${sx}, ${sy}`)
    }
  }
})
