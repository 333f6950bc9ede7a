import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forget, heard, held } from './positions'

test('a position stands for those that were held when its request was sent', () => {
  forget()
  const before = held()
  heard('a', before)
  heard('b', before) // of a request that ran beside the first
  assert.deepEqual(held(), ['a', 'b'])
  heard(null, held()) // a read, or a server without a replica
  assert.deepEqual(held(), ['a', 'b'])
  heard('c', held())
  assert.deepEqual(held(), ['c'])
})

test('they are bounded, and the newest are kept', () => {
  forget()
  for (let i = 0; i < 40; i++) heard(String(i), [])
  assert.equal(held().length, 16)
  assert.equal(held().at(-1), '39')
  forget()
  assert.deepEqual(held(), [])
})
