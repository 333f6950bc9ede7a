// What the model sees of the shown branch: read after the branch is on the
// screen and whenever its head changes.
import { type Forest, pathTo } from './forest'
import { computed, effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import type { Problem } from '../api/http'
import type { Compaction, Context, NewCompaction } from '../api/types'
import { count, number } from '../text/format'
import * as branch from './branch'
import { returns } from './connection'
import * as models from './models'
import { failed, note } from './notices'
import { tell } from './tabs'
import * as tree from './tree'

export const context = signal<Context | null>(null)

/** problem is why there is none. */
export const problem = signal<Problem | Error | null>(null)

let reading = new AbortController()

/** start reads the context of whatever branch is shown from now on. */
export function start() {
  effect(() => {
    const head = branch.head.value
    void returns.value
    void window()
    untracked(() => {
      const p = branch.path.peek()
      reading.abort()
      reading = new AbortController()
      if (!p || head === null) context.value = problem.value = null
      else void read(p.conversation, head, reading.signal)
    })
  })
}

/** window is the chosen model's, unless the conversation has a setting for it. */
const window = () => (branch.conversation.value?.settings.max_context_tokens === undefined ? models.window.value : undefined)

async function read(conversation: string, head: string, signal: AbortSignal) {
  // What a person switches through quickly need not be read.
  await new Promise(done => setTimeout(done, context.peek()?.conversation_id === conversation ? 120 : 0))
  if (signal.aborted) return
  try {
    const found = await api.getContext(conversation, head, untracked(window), signal)
    if (signal.aborted) return
    context.value = found
    problem.value = null
    if (found.usage.context_tokens > found.usage.trigger_tokens) void watch(conversation, head, signal)
  } catch (error) {
    if (!signal.aborted) problem.value = error as Error
  }
}

/** watch looks again a few times for a summary that the server is making. */
async function watch(conversation: string, head: string, signal: AbortSignal) {
  for (const wait of [1500, 3000, 6000, 12_000, 24_000]) {
    await new Promise(done => setTimeout(done, wait))
    if (signal.aborted) return
    const found = await api.getContext(conversation, head, untracked(window), signal).catch(() => null)
    if (signal.aborted || !found) return
    if (found.summary?.id !== context.peek()?.summary?.id) {
      context.value = found
      void tree.reload(conversation).catch(() => {})
      return
    }
  }
}

/** reread reads the context of the head that is shown. */
function reread() {
  const p = branch.path.peek()
  const head = branch.headOf(p)
  reading.abort()
  reading = new AbortController()
  if (p && head !== null) void read(p.conversation, head, reading.signal)
}

export type PartKind = 'prefix' | 'summary' | 'turn' | 'tail' | 'repair'

/** A Piece is one of the context's messages and where it comes from. */
export interface Piece {
  kind: PartKind
  id: string
  tokens: number | null
}

/** pieces tells of each of the context's messages what it is. */
export const pieces = computed<Piece[]>(() => {
  const c = context.value
  if (!c) return []
  return derive(c, tree.forest.value)
})

function derive(c: Context, forest: Forest | null): Piece[] {
  const knot = forest?.byId.get(c.head_id)
  const ids = knot ? pathTo(knot) : []
  const piece = (kind: PartKind, id: string): Piece => ({ kind, id, tokens: forest?.byId.get(id)?.tokens ?? null })
  const repaired = new Map(c.repairs.map(r => [r.index, r.message_id]))
  let tail = ids.length - c.counts.tail
  // A word of the assistant's stands between a summary and a tail that begins with the user.
  const between = c.summary && c.messages.length > c.counts.prefix + 1 + c.repairs.length + c.counts.tail ? c.counts.prefix + 1 : -1
  const all = c.messages.map((_, i): Piece => {
    if (i < c.counts.prefix) return piece('prefix', ids[i] ?? '')
    if (c.summary && i === c.counts.prefix) return { kind: 'summary', id: c.summary.id, tokens: c.summary.tokens }
    if (i === between) return { kind: 'turn', id: '', tokens: null }
    const repair = repaired.get(i)
    if (repair !== undefined) return { kind: 'repair', id: repair, tokens: null }
    return piece('tail', ids[tail++] ?? '')
  })
  const rest = all.reduce((left, p, i) => (i === between ? left : left - (p.tokens ?? NaN)), c.usage.context_tokens)
  return all.map((p, i) => (i === between && rest >= 0 ? { ...p, tokens: rest } : p))
}

/** A Budget is how the window is shared out, in tokens. */
export interface Budget {
  prefix: number
  summary: number
  tail: number
  free: number
  available: number
  trigger: number
  used: number
  kept: number
}

export const budget = computed<Budget | null>(() => {
  const c = context.value
  if (!c) return null
  const prefix = pieces.value.reduce((sum, p) => sum + (p.kind === 'prefix' ? (p.tokens ?? 0) : 0), 0)
  const summary = c.summary?.tokens ?? 0
  const { context_tokens: used, available_tokens: available, trigger_tokens: trigger } = c.usage
  return {
    prefix, summary, tail: Math.max(0, used - prefix - summary), free: Math.max(0, available - used),
    available, trigger, used, kept: c.counts.kept,
  }
})

/** cutoff is the depth of the last folded message, null where nothing is folded. */
export const cutoff = computed<number | null>(() => {
  const c = context.value
  return c?.summary ? c.counts.prefix + c.counts.folded - 1 : null
})

/** foldedTokens is what the folded messages have, null until the skeleton is there. */
export const foldedTokens = computed<number | null>(() => {
  const c = context.value
  let knot = c?.summary && (tree.forest.value?.byId.get(c.summary.last_summarized_id) ?? null)
  if (!c || !knot) return null
  let sum = 0
  for (; knot && knot.depth >= c.counts.prefix; knot = knot.parent) sum += knot.tokens
  return sum
})

/** compacting is true while a summary is being written on demand. */
export const compacting = signal(false)

/** compact folds what may be folded of the shown branch, or makes a summary of it again, and says what came of it. It gives the id of the new summary, if there is one. */
export async function compact(wishes: NewCompaction = {}, again?: string): Promise<string | null> {
  const p = branch.path.peek()
  const head = branch.headOf(p)
  if (!p || head === null || compacting.peek()) return null
  compacting.value = true
  try {
    const done = await (again === undefined ? api.compact(p.conversation, head, wishes) : api.remake(p.conversation, again, wishes))
    report(done, p.conversation)
    return done.outcome === 'saved' ? done.summary_id : null
  } catch (error) {
    failed('The branch was not compacted')(error)
    return null
  } finally {
    compacting.value = false
    reread()
    void tree.reload(p.conversation).catch(() => {})
    tell({ conversation: p.conversation })
  }
}

const outcomes: Record<Compaction['outcome'], string> = {
  saved: '',
  nothing_to_do: 'Nothing to fold: what there is stays as it is.',
  no_gain: 'Not folded: the summary would be no smaller than what it replaces.',
  superseded: 'Not folded: another summary was saved meanwhile.',
  stale: 'Not folded: the messages were deleted meanwhile.',
  failed: 'Not folded: no model gave a summary.',
}

function report(c: Compaction, conversation: string) {
  if (c.outcome !== 'saved' || c.summary_id === null) {
    note(outcomes[c.outcome], { bad: c.outcome === 'failed' })
    return
  }
  const id = c.summary_id
  note(`${count(c.folded_messages, 'message')} folded, ${number(c.tokens_before)} → ${number(c.tokens_after)} tokens.`, {
    action: { label: 'Undo', run: () => void undo(conversation, id) },
  })
}

/** undo deletes a summary. The one before it applies again, if there is one. */
export async function undo(conversation: string, summary: string) {
  try {
    await api.prune(conversation, summary)
    reread()
    void tree.reload(conversation).catch(() => {})
    tell({ conversation })
  } catch (error) {
    failed('The summary was not undone')(error)
  }
}
