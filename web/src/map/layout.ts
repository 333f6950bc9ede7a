// Where everything stands on the map, and what is at a place of it.
import { hierarchy, tree } from 'd3-hierarchy'
import type { Fold } from '../state/forest'
import type { Item } from './outline'

/** A Spot is an item in its place, in pixels at zoom 1. */
export interface Spot {
  item: Item
  x: number
  y: number
  parent: Spot | null
  children: Spot[]
}

export interface Layout {
  /** Spots by rows from the top, each from left to right. */
  rows: Spot[][]
  byItem: Map<string, Spot>
  bounds: { left: number; right: number; top: number; bottom: number }
}

export const rowHeight = 36
const columnWidth = 32

/** lay places items. Several roots stand beside one another. */
export function lay(roots: Item[]): Layout {
  const top = hierarchy<{ item: Item | null; children: Item[] }>(
    { item: null, children: roots },
    d => (d.item ? d.item.children : roots).map(item => ({ item, children: item.children })),
  )
  const placed = tree<{ item: Item | null; children: Item[] }>().nodeSize([columnWidth, rowHeight])(top)
  const layout: Layout = { rows: [], byItem: new Map(), bounds: { left: 0, right: 0, top: 0, bottom: 0 } }
  placed.each(node => {
    const { item } = node.data
    if (!item) return
    const parent = node.parent?.data.item ? (layout.byItem.get(node.parent.data.item.knot.id) ?? null) : null
    const spot: Spot = { item, x: node.x, y: node.y - rowHeight, parent, children: [] }
    parent?.children.push(spot)
    ;(layout.rows[node.depth - 1] ??= []).push(spot)
    layout.byItem.set(item.knot.id, spot)
  })
  const { bounds } = layout
  const first = layout.rows[0]?.[0]
  if (first) bounds.left = bounds.right = first.x
  for (const row of layout.rows) {
    row.sort((a, b) => a.x - b.x)
    bounds.left = Math.min(bounds.left, row[0]!.x)
    bounds.right = Math.max(bounds.right, row.at(-1)!.x)
  }
  bounds.bottom = Math.max(0, layout.rows.length - 1) * rowHeight
  return layout
}

/** spotOf finds the spot of a message, which may lie in a run or below a closed item. */
export function spotOf(layout: Layout, ids: readonly (string | undefined)[], depth: number): Spot | null {
  for (let d = depth; d >= 0; d--) {
    const spot = layout.byItem.get(ids[d] ?? '')
    if (spot) return spot
  }
  return null
}

/** between gives the part of a row from one x to another, by binary search. */
export function between(row: readonly Spot[], from: number, to: number): readonly Spot[] {
  const search = (x: number) => {
    let low = 0
    let high = row.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (row[middle]!.x < x) low = middle + 1
      else high = middle
    }
    return low
  }
  return row.slice(search(from), search(to))
}

/** diamondAt is where the nth summary of a spot is drawn. */
export const diamondAt = (spot: Spot, n: number) => ({ x: spot.x + 14 + n * 10, y: spot.y })

export type Found = { spot: Spot; fold: Fold | null }

/** find is what lies within a reach of a place. */
export function find(layout: Layout, x: number, y: number, reach: number): Found | null {
  let best: Found | null = null
  let least = reach * reach
  const consider = (found: Found, at: { x: number; y: number }) => {
    const distance = (at.x - x) ** 2 + (at.y - y) ** 2
    if (distance >= least) return
    least = distance
    best = found
  }
  const from = Math.max(0, Math.floor((y - reach) / rowHeight))
  const to = Math.min(layout.rows.length - 1, Math.ceil((y + reach) / rowHeight))
  for (let r = from; r <= to; r++) {
    for (const spot of between(layout.rows[r]!, x - reach - 60, x + reach)) {
      consider({ spot, fold: null }, spot)
      for (const [n, fold] of spot.item.end.summaries.entries()) consider({ spot, fold }, diamondAt(spot, n))
    }
  }
  return best
}
