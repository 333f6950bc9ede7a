// Where everything stands on the map, and what is at a place of it. The branch that
// is shown goes straight down; what parts from it leans to the right.
import type { Fold } from '../state/forest'
import type { Item } from './outline'

/** A Spot is an item in its place, in pixels at zoom 1. */
export interface Spot {
  item: Item
  x: number
  y: number
  parent: Spot | null
  /** The first one stands straight below. */
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

/**
 * An Edge is how far a subtree reaches to the right in each of its rows, seen from its
 * root. The deepest row stands first, so that a parent's is added at the end; shift is
 * added to all.
 */
interface Edge {
  reach: number[]
  shift: number
}

/**
 * lay places items in time that grows with their number alone, at any depth. Several
 * roots stand beside one another.
 */
export function lay(roots: Item[], branch: ReadonlySet<string> = new Set()): Layout {
  const layout: Layout = { rows: [], byItem: new Map(), bounds: { left: 0, right: 0, top: 0, bottom: 0 } }
  const enter = (item: Item, parent: Spot | null): Spot => ({ item, x: 0, y: parent ? parent.y + rowHeight : 0, parent, children: [] })
  const straightFirst = (items: Item[], parent: Spot | null) => {
    const spots = items.map(item => enter(item, parent))
    const straight = spots.findIndex(s => branch.has(s.item.knot.id))
    if (straight > 0) spots.unshift(...spots.splice(straight, 1))
    return spots
  }
  const top = straightFirst(roots, null)
  const all = [...top] // a parent before its children
  for (let i = 0; i < all.length; i++) {
    const spot = all[i]!
    spot.children = straightFirst(spot.item.children, spot)
    for (const child of spot.children) all.push(child)
  }
  const edges = new Map<Spot, Edge>()
  for (const spot of all.toReversed()) {
    const edge = besides(spot.children, edges)
    edge.reach.push(-edge.shift)
    edges.set(spot, edge)
  }
  besides(top, edges)
  for (const spot of all) {
    spot.x += spot.parent?.x ?? 0
    ;(layout.rows[spot.y / rowHeight] ??= []).push(spot)
    layout.byItem.set(spot.item.knot.id, spot)
    layout.bounds.right = Math.max(layout.bounds.right, spot.x)
  }
  for (const row of layout.rows) row.sort((a, b) => a.x - b.x)
  layout.bounds.bottom = Math.max(0, layout.rows.length - 1) * rowHeight
  return layout
}

/** besides puts subtrees beside one another, each to the right of all before it in the rows that it has, and gives the edge of them all. */
function besides(spots: Spot[], edges: Map<Spot, Edge>): Edge {
  let all: Edge = { reach: [], shift: 0 }
  for (const spot of spots) {
    const own = edges.get(spot)!
    edges.delete(spot)
    const rows = Math.min(own.reach.length, all.reach.length)
    let most = -columnWidth
    for (let i = 1; i <= rows; i++) most = Math.max(most, all.reach.at(-i)! + all.shift)
    spot.x = most + columnWidth
    own.shift += spot.x
    if (rows === all.reach.length) all = own
    else for (let i = 1; i <= rows; i++) all.reach[all.reach.length - i] = own.reach.at(-i)! + own.shift - all.shift
  }
  return all
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
