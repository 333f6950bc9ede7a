// What the map draws: the tree with its long unbranched runs put together and
// the branches that the reader closed left out.
import type { Fold, Forest, Knot } from '../state/forest'

/** An Item is a dot of the map: a message, or a run of messages with one child each. */
export interface Item {
  /** The message, or the first one of the run. It names the item. */
  knot: Knot
  /** The last message of the run; of a single message, itself. */
  end: Knot
  /** How many messages it stands for. */
  count: number
  children: Item[]
  /** Messages below that are not drawn, because the reader closed the item or nobody opened the family. */
  hidden: number
  /** Siblings that this mark stands for in place of a message; 0 for a message. */
  gathered: number
}

export interface Shape {
  /** Runs that are drawn message by message, by their first message. */
  opened: ReadonlySet<string>
  /** Messages whose branches are not drawn. */
  closed: ReadonlySet<string>
  /** Parents whose families are drawn whole, by the parent's id; of the roots, "". */
  spread: ReadonlySet<string>
  /** Whether all runs are drawn message by message. */
  everything: boolean
  head: string | null
}

/** widest is how many siblings are drawn: of a larger family, the first, the newest and the one on the branch, and one mark for the rest. */
const widest = 12
const newest = 6

/** shortest is how many messages make a run: fewer are no longer than the mark that would stand for them. */
const shortest = 3

/** outline gives the items at the roots. It takes trees of any depth. */
export function outline(forest: Forest, shape: Shape): Item[] {
  const landmarks = new Set<string>()
  if (shape.head) landmarks.add(shape.head)
  for (const fold of forest.folds.values()) landmarks.add(fold.anchor.id).add(fold.cutoff.id)
  for (const { knot, from } of forest.grafts) landmarks.add(knot.id).add(from)
  const branch = new Set<Knot>()
  for (let k = shape.head ? forest.byId.get(shape.head) : undefined; k; k = k.parent ?? undefined) branch.add(k)
  const roots: Item[] = []
  const open: { knot: Knot | Knot[]; into: Item[] }[] = []
  const enter = (parent: string, family: readonly Knot[], into: Item[]) => {
    const drawn = shape.spread.has(parent) || family.length <= widest ? family : gather(family, branch)
    for (let i = drawn.length - 1; i >= 0; i--) open.push({ knot: drawn[i]!, into })
  }
  enter('', forest.roots, roots)
  for (let next = open.pop(); next; next = open.pop()) {
    if (Array.isArray(next.knot)) {
      const [first] = next.knot
      next.into.push({ knot: first!, end: first!, count: 1, children: [], hidden: next.knot.reduce((n, k) => n + size(k), 0), gathered: next.knot.length })
      continue
    }
    const item = itemAt(next.knot, landmarks, shape)
    next.into.push(item)
    if (shape.closed.has(item.end.id)) item.hidden = size(item.end) - 1
    else enter(item.end.id, item.end.children, item.children)
  }
  return roots
}

/** gather puts the middle of a large family together, on either side of the sibling that is on the branch. */
function gather(family: readonly Knot[], branch: ReadonlySet<Knot>): (Knot | Knot[])[] {
  const out: (Knot | Knot[])[] = []
  let rest: Knot[] = []
  const flush = () => {
    if (rest.length > 1) out.push(rest)
    else out.push(...rest)
    rest = []
  }
  family.forEach((knot, i) => {
    if (i > 0 && i < family.length - newest && !branch.has(knot)) return rest.push(knot)
    flush()
    return out.push(knot)
  })
  return out
}

function itemAt(knot: Knot, landmarks: Set<string>, shape: Shape): Item {
  const item: Item = { knot, end: knot, count: 1, children: [], hidden: 0, gathered: 0 }
  if (shape.everything || shape.opened.has(knot.id) || !plain(knot, landmarks, shape)) return item
  let count = 1
  let end = knot
  for (let next = end.children[0]!; plain(next, landmarks, shape) && !shape.opened.has(next.id); next = end.children[0]!) {
    end = next
    count++
  }
  return count < shortest ? item : { ...item, end, count }
}

/** plain is a message at which nothing happens: it has one child, and stands alone below its parent. */
function plain(knot: Knot, landmarks: Set<string>, shape: Shape): boolean {
  return (
    knot.children.length === 1 && knot.parent !== null && knot.parent.children.length === 1 &&
    !landmarks.has(knot.id) && !shape.closed.has(knot.id)
  )
}

function size(knot: Knot): number {
  let n = 0
  const open = [knot]
  for (let k = open.pop(); k; k = open.pop()) {
    n++
    open.push(...k.children)
  }
  return n
}

/** runOf lists the messages of a run, to draw each of them. */
export function runOf(item: Item): string[] {
  const ids: string[] = []
  for (let k: Knot | null = item.end; k; k = k.parent) {
    ids.push(k.id)
    if (k === item.knot) break
  }
  return ids
}

/** folded are the messages that a summary stands for. */
export function folded(fold: Fold): Set<string> {
  const path: Knot[] = []
  for (let k: Knot | null = fold.cutoff; k; k = k.parent) path.push(k)
  path.reverse()
  let prefix = 0
  while (prefix < path.length && (path[prefix]!.role === 'system' || path[prefix]!.role === 'developer')) prefix++
  return new Set(path.slice(prefix).map(k => k.id))
}
