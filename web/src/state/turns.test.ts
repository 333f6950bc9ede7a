import assert from 'node:assert/strict'
import test from 'node:test'
import { inTurn } from './turns'

test('calls during a reading are one more reading after it', async () => {
  const ends: (() => void)[] = []
  const refresh = inTurn(() => new Promise<void>(end => ends.push(end)))
  const all = Promise.all([refresh(), refresh(), refresh()])
  assert.equal(ends.length, 1)
  ends[0]!()
  await new Promise(done => setImmediate(done))
  assert.equal(ends.length, 2)
  ends[1]!()
  await all
  assert.equal(ends.length, 2)
  void refresh()
  assert.equal(ends.length, 3)
})

test('a reading that failed is no reason not to read again', async () => {
  let fails = true
  const refresh = inTurn(async () => {
    if (fails) throw new Error('no')
  })
  await assert.rejects(refresh(), /no/)
  fails = false
  await refresh()
})

test('a reading that failed is no reason not to read once more', async () => {
  let times = 0
  const refresh = inTurn(async () => {
    times++
    await new Promise(done => setImmediate(done))
    if (times === 1) throw new Error('no')
  })
  await Promise.all([refresh(), refresh()])
  assert.equal(times, 2)
})
