import assert from 'node:assert/strict'
import test from 'node:test'
import { Ruler } from './ruler'

const keys = (n: number) => Array.from({ length: n }, (_, i) => `k${i}`)

test('rows that were never measured are estimated', () => {
  const r = new Ruler()
  r.reset(keys(3))
  assert.equal(r.offset(2), 272)
  assert.equal(r.total, 408)
})

test('a measured row moves those after it', () => {
  const r = new Ruler()
  r.reset(keys(3))
  assert.equal(r.measure(0, 36), true)
  assert.equal(r.measure(0, 36), false)
  assert.equal(r.offset(1), 36)
  assert.equal(r.total, 308)
})

test('at finds the row of a place, also beyond both ends', () => {
  const r = new Ruler()
  r.reset(keys(3))
  r.measure(1, 10)
  assert.deepEqual([-5, 0, 135, 136, 145, 146, 9999].map(y => r.at(y)), [0, 0, 0, 1, 1, 2, 2])
})

test('a list that changes keeps what was measured of its rows', () => {
  const r = new Ruler()
  r.reset(keys(4))
  r.measure(3, 1000)
  r.reset(['k0', 'k3'])
  assert.equal(r.total, 1136)
  r.reset([])
  assert.equal(r.total, 0)
  assert.equal(r.at(10), 0)
})

test('offsets are the sums of heights, whatever is measured in whatever order', () => {
  const r = new Ruler()
  const list = keys(50)
  const heights = new Map(list.map(k => [k, 136]))
  let seed = 7
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  for (let step = 0; step < 500; step++) {
    const rows = list.slice(0, 1 + random(50))
    r.reset(rows)
    const row = random(rows.length)
    heights.set(rows[row]!, 20 + random(400))
    r.measure(row, heights.get(rows[row]!)!)
    const to = random(rows.length + 1)
    assert.equal(r.offset(to), rows.slice(0, to).reduce((sum, k) => sum + heights.get(k)!, 0))
  }
})
