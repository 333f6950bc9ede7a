// The shapes of the REST API that the page uses. The client has its
// schemas, generated from openapi.yaml (npm run types); this file gives them short names. The
// parts of a message's content are chat-completions', which openapi.yaml leaves
// open, so they stand here.
import type { Schemas } from '@coppice-chat/client'

export interface Part {
  type: string
  text?: string
  refusal?: string
  image_url?: { url: string }
  file?: { filename?: string; file_id?: string }
}

export type Content = string | Part[] | null

/** Said is a schema with the content of a chat-completions message. */
type Said<T> = Omit<T, 'content'> & { content?: Content; reasoning_content?: string | null }

export type Role = Schemas['Role']
export type ToolCall = Schemas['ToolCall']
export type Message = Said<Schemas['Message']>
export type Conversation = Schemas['Conversation']
export type ConversationUpdate = Schemas['ConversationUpdate']
export type Preset = Schemas['Preset']
export type Settings = Schemas['Settings']
export type TagCount = Schemas['TagPage']['data'][number]
export type Explanation = Schemas['Explanation']
export type Node = Schemas['Node']
export type Grafted = Schemas['Grafted']
export type Hit = Omit<Schemas['Hit'], 'message'> & { message: Message }
export type HitPage = Page<Hit> & { conversations?: Conversation[] }
export type ContextMessage = Pick<Message, 'role' | 'content' | 'tool_calls' | 'tool_call_id' | 'name'>
export type Origin = Schemas['Origin']
export type Context = Omit<Schemas['Context'], 'messages'> & { messages: ContextMessage[] }
export type Summary = Schemas['Summary']
export type NewCompaction = Schemas['NewCompaction']
export type Compaction = Schemas['Compaction']
export type ImportReport = Schemas['ImportReport']
export type Attachment = Schemas['Attachment']
export type Model = Schemas['Model']
export type ModelOffer = Schemas['ModelOffer']
export type Share = Schemas['Share']
export type SharedMessage = Said<Schemas['SharedMessage']>
export type Shared = Omit<Schemas['Shared'], 'data' | 'summary'> & { data: SharedMessage[]; summary: Said<NonNullable<Schemas['Shared']['summary']>> | null }

export type ComparedSide = Omit<Schemas['ComparedSide'], 'data'> & { data: Message[] }
export type Comparison = Omit<Schemas['Comparison'], 'left' | 'right'> & Record<'left' | 'right', ComparedSide>

export interface Page<T> {
  data: T[]
  next_cursor: string | null
}
