// Nodes for tests, as GET …/tree gives them.
import type { Node } from '../api/types'

let clock = 0
export const message = (id: string, parent: string | null, role: Node['role'] = 'user'): Node => ({
  id, parent_id: parent, kind: 'message', role, depth: 0, tokens: 10, pinned: false, sibling_index: 1, created_at: `2026-01-01T00:00:${clock++}Z`,
})
export const summary = (id: string, anchor: string, cutoff: string): Node => ({
  ...message(id, anchor), kind: 'summary', last_summarized_id: cutoff, prior_summary_id: null, kept_ids: [], model: 'm',
})
