import assert from 'node:assert/strict'
import test from 'node:test'
import { below, build, pathTo, plant, siblings } from './forest'
import { message, summary } from './forest.testing'

const nodes = [
  message('a', null), message('b', 'a'), message('c', 'a'), message('d', 'b'), message('e', 'd'), summary('s', 'd', 'b'),
]

test('a forest has every message at its depth, and summaries at their anchors', () => {
  const f = build('x', nodes)
  assert.deepEqual(f.roots.map(k => k.id), ['a'])
  assert.deepEqual([...f.byId.values()].map(k => [k.id, k.depth]), [['a', 0], ['b', 1], ['c', 1], ['d', 2], ['e', 3]])
  assert.equal(f.folds.get('s')?.anchor.id, 'd')
  assert.equal(f.folds.get('s')?.cutoff.id, 'b')
  assert.deepEqual(f.byId.get('d')?.summaries.map(s => s.id), ['s'])
})

test('what has no place is left out', () => {
  const f = build('x', [message('a', null), message('b', 'gone'), summary('s', 'gone', 'a'), summary('t', 'a', 'gone'), message('a', null)])
  assert.deepEqual([...f.byId.keys()], ['a'])
  assert.equal(f.roots.length, 1)
  assert.equal(f.folds.size, 0)
})

test('a path goes from the root to the message', () => {
  const f = build('x', nodes)
  assert.deepEqual(pathTo(f.byId.get('e')!), ['a', 'b', 'd', 'e'])
})

test('siblings of a root are the roots', () => {
  const f = build('x', [...nodes, message('z', null)])
  assert.deepEqual(siblings(f, f.byId.get('z')!).map(k => k.id), ['a', 'z'])
  assert.deepEqual(siblings(f, f.byId.get('c')!).map(k => k.id), ['b', 'c'])
})

test('below counts messages, leaves and summaries', () => {
  const f = build('x', nodes)
  assert.deepEqual(below(f.byId.get('a')!), { messages: 5, leaves: 2, summaries: 1 })
  assert.deepEqual(below(f.byId.get('c')!), { messages: 1, leaves: 1, summaries: 0 })
})

test('a message is planted once', () => {
  const f = build('x', nodes)
  plant(f, 'n', 'e', 'assistant', 5)
  plant(f, 'n', 'e', 'assistant', 5)
  assert.equal(f.byId.get('e')!.children.length, 1)
})
