// A conversation's tree without its texts: messages as knots, summaries as folds.
import type { Grafted, Node, Role } from '../api/types'

/** A Knot is a message in its place in the tree. */
export interface Knot {
  id: string
  parent: Knot | null
  children: Knot[]
  summaries: Fold[]
  role: Role
  depth: number
  tokens: number
}

/** A Fold is a summary: it stands at its anchor and replaces all up to the cutoff. */
export interface Fold {
  id: string
  anchor: Knot
  cutoff: Knot
  prior: string | null
  tokens: number
  model: string
  imported: boolean
  createdAt: string
}

export interface Forest {
  conversation: string
  roots: Knot[]
  byId: Map<string, Knot>
  folds: Map<string, Fold>
  /** Messages that were brought, with the heads of the branches that they come from. */
  grafts: { knot: Knot; from: string }[]
}

/** build makes a forest of nodes, a parent before its children. What has no parent among them is left out. */
export function build(conversation: string, nodes: Node[]): Forest {
  const f: Forest = { conversation, roots: [], byId: new Map(), folds: new Map(), grafts: [] }
  for (const n of nodes) if (n.kind === 'message') plant(f, n.id, n.parent_id, n.role, n.tokens, n.grafted)
  for (const n of nodes) if (n.kind === 'summary') fold(f, n)
  return f
}

/** plant adds a message, unless it is there or its parent is not. */
export function plant(f: Forest, id: string, parentId: string | null, role: Role, tokens: number, grafted?: Grafted) {
  const parent = parentId === null ? null : f.byId.get(parentId)
  if (parent === undefined || f.byId.has(id)) return
  const knot: Knot = { id, parent, children: [], summaries: [], role, depth: parent ? parent.depth + 1 : 0, tokens }
  ;(parent ? parent.children : f.roots).push(knot)
  f.byId.set(id, knot)
  if (grafted) f.grafts.push({ knot, from: grafted.from_head_id })
}

function fold(f: Forest, n: Node) {
  const anchor = f.byId.get(n.parent_id ?? '')
  const cutoff = f.byId.get(n.last_summarized_id ?? '')
  if (!anchor || !cutoff) return
  const made: Fold = {
    id: n.id, anchor, cutoff, prior: n.prior_summary_id ?? null, tokens: n.tokens, model: n.model ?? '', imported: n.origin != null, createdAt: n.created_at,
  }
  anchor.summaries.push(made)
  f.folds.set(n.id, made)
}

/** pathTo lists the ids from the root to a knot. */
export function pathTo(knot: Knot): string[] {
  const ids = new Array<string>(knot.depth + 1)
  for (let k: Knot | null = knot; k; k = k.parent) ids[k.depth] = k.id
  return ids
}

/** siblings are the children of a knot's parent, or the roots, by creation. */
export const siblings = (f: Forest, knot: Knot) => (knot.parent ? knot.parent.children : f.roots)

/** newest is the leaf below a knot that was made last: the ids are in the order of their making. */
export function newest(knot: Knot): Knot {
  let found = knot
  const open = [knot]
  for (let k = open.pop(); k; k = open.pop()) {
    if (k.children.length === 0 && (found.children.length > 0 || k.id > found.id)) found = k
    open.push(...k.children)
  }
  return found
}

/** below counts what pruning a knot would delete, itself included. */
export function below(knot: Knot): { messages: number; leaves: number; summaries: number } {
  const count = { messages: 0, leaves: 0, summaries: 0 }
  const open = [knot]
  for (let k = open.pop(); k; k = open.pop()) {
    count.messages++
    count.summaries += k.summaries.length
    if (k.children.length === 0) count.leaves++
    open.push(...k.children)
  }
  return count
}
