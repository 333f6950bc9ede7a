// The shapes of the REST API that the page uses; openapi.yaml defines them.

export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool'

export interface Part {
  type: string
  text?: string
  refusal?: string
  image_url?: { url: string }
  file?: { filename?: string }
}

export type Content = string | Part[] | null

export interface ToolCall {
  id: string
  function?: { name: string; arguments: string }
  custom?: { name: string; input: string }
}

export interface Message {
  id: string
  conversation_id: string
  parent_id: string | null
  role: Role
  content?: Content
  tool_calls?: ToolCall[] | null
  tool_call_id?: string | null
  name?: string | null
  refusal?: string | null
  reasoning_content?: string | null
  pinned: boolean
  metadata: Record<string, unknown>
  tokens: number
  depth: number
  siblings: { index: number; count: number }
  created_at: string
}

export interface Conversation {
  id: string
  title: string
  metadata: Record<string, unknown>
  settings: Record<string, unknown>
  head_id: string | null
  created_at: string
  updated_at: string
}

export interface Page<T> {
  data: T[]
  next_cursor: string | null
}

export interface Node {
  id: string
  parent_id: string | null
  kind: 'message' | 'summary'
  role: Role
  depth: number
  tokens: number
  pinned: boolean
  sibling_index?: number
  created_at: string
  last_summarized_id?: string
  prior_summary_id?: string | null
  kept_ids?: string[]
  model?: string
  origin?: Origin | null
}

/** Where text of a summary came in from outside. Nobody checked it against the messages. */
export interface Origin {
  imported_at: string
  format: string
  first_imported_at: string | null
  merged: boolean
}

export interface Tree {
  conversation_id: string
  head_id: string | null
  data: Node[]
}

export interface Pruned {
  messages: number
  summaries: number
  head_id: string | null
}

export interface Hit {
  message: Message
  head_id: string
  title: string
  snippet: string
}

export interface ContextMessage {
  role: Role
  content?: Content
  tool_calls?: ToolCall[] | null
  tool_call_id?: string | null
  name?: string | null
}

export interface ContextSummary {
  id: string
  parent_id: string
  last_summarized_id: string
  prior_summary_id: string | null
  kept_ids: string[]
  model: string
  origin: Origin | null
  tokens: number
  created_at: string
}

export interface Usage {
  context_tokens: number
  available_tokens: number
  max_context_tokens: number
  reserved_tokens: number
  trigger_tokens: number
  percent: number
}

export type PartKind = 'prefix' | 'summary' | 'tail' | 'repair'

export interface Context {
  conversation_id: string
  head_id: string
  messages: ContextMessage[]
  summary: ContextSummary | null
  usage: Usage
  counts: { prefix: number; kept: number; folded: number; tail: number }
  complete: boolean
  omitted_messages: number
  repairs: { kind: string; message_id: string; tool_call_id: string; index: number }[]
  status: string
  parts?: { kind: PartKind; id: string; tokens: number }[]
}

export interface Summary extends ContextSummary {
  conversation_id: string
  text: string
  metadata: Record<string, unknown>
  prior: Omit<Summary, 'prior'> | null
}

export interface Compaction {
  id: string
  head_id: string
  summary_id: string | null
  outcome: 'saved' | 'nothing_to_do' | 'no_gain' | 'superseded' | 'stale' | 'failed'
  reason: string
  model: string
  messages_before: number
  messages_after: number
  tokens_before: number
  tokens_after: number
  folded_messages: number
  folded_tokens: number
  duration_ms: number
  created_at: string
}

export interface ImportReport {
  format: string
  conversations: number
  messages: number
  summaries: number
  summaries_dropped: number
  branch_points: number
  leaves: number
  added: number
  present: number
  notes: { action: string; kind: string; conversation: string; place: string; detail: string }[]
}
