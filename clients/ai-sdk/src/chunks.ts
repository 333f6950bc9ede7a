import type { ReplyEvent, Schemas } from '@coppice-chat/client'
import type { UIMessageChunk } from 'ai'
import { json, metadataOf, textOf, type ChatMetadata } from './messages.js'

type Chunk = UIMessageChunk<ChatMetadata>
type Call = { id?: string; name?: string; arguments: string }

const reasons = { stop: 'stop', length: 'length', content_filter: 'content-filter', tool_calls: 'tool-calls' } as const

/**
 * Chunks turns the events of a reply into those of a UI message stream. A
 * message that goes on, after the results of its tools, keeps its id.
 */
export class Chunks {
  private open: { type: 'text' | 'reasoning'; id: string } | undefined
  private parts = 0
  private readonly calls: Call[] = []
  private first: Schemas['Message'] | undefined

  constructor(private readonly goesOn: boolean) {}

  *of({ event, data }: ReplyEvent): Generator<Chunk> {
    switch (event) {
      case 'reply.started':
        yield this.goesOn ? { type: 'start' } : { type: 'start', messageId: data.message_id }
        yield { type: 'start-step' }
        return
      case 'reply.reasoning':
        yield* this.piece('reasoning', data.reasoning)
        return
      case 'reply.delta':
        if (data.content) yield* this.piece('text', data.content)
        if (data.refusal) yield* this.piece('text', data.refusal)
        for (const call of data.tool_calls ?? []) yield* this.callPiece(call as unknown as ToolCallPiece)
        return
      case 'reply.message':
        this.first ??= data.message
        yield* this.step(data.message)
        return
      case 'reply.completed':
        yield* this.end(data.message, reasons[data.finish_reason as keyof typeof reasons] ?? 'other')
        return
      case 'reply.stopped':
        yield* this.close()
        yield { type: 'abort' }
        return
      case 'reply.failed':
        yield* this.close()
        yield { type: 'error', errorText: data.detail }
    }
  }

  private *piece(type: 'text' | 'reasoning', delta: string): Generator<Chunk> {
    if (this.open?.type !== type) {
      yield* this.close()
      this.open = { type, id: String(this.parts++) }
      yield { type: `${type}-start`, id: this.open.id }
    }
    yield { type: `${type}-delta`, id: this.open.id, delta }
  }

  private *close(): Generator<Chunk> {
    if (this.open) yield { type: `${this.open.type}-end`, id: this.open.id }
    this.open = undefined
  }

  private *callPiece({ index, id, function: f }: ToolCallPiece): Generator<Chunk> {
    yield* this.close()
    const call = (this.calls[index] ??= { arguments: '' })
    const begun = call.id !== undefined && call.name !== undefined
    call.id ??= id
    call.name ??= f?.name
    const more = f?.arguments ?? ''
    call.arguments += more
    if (call.id === undefined || call.name === undefined) return
    if (!begun) yield { type: 'tool-input-start', toolCallId: call.id, toolName: call.name }
    const delta = begun ? more : call.arguments
    if (delta) yield { type: 'tool-input-delta', toolCallId: call.id, inputTextDelta: delta }
  }

  /** step shows a search of what a summary folded, which the server runs itself. */
  private *step(m: Schemas['Message']): Generator<Chunk> {
    yield* this.close()
    for (const call of m.tool_calls ?? []) {
      yield { type: 'tool-input-available', toolCallId: call.id, toolName: call.function?.name ?? '', input: json(call.function?.arguments ?? ''), providerExecuted: true }
    }
    if (m.role === 'tool' && m.tool_call_id) yield { type: 'tool-output-available', toolCallId: m.tool_call_id, output: json(textOf(m)), providerExecuted: true }
  }

  private *end(m: Schemas['Message'], finishReason: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'other'): Generator<Chunk> {
    yield* this.close()
    for (const call of this.calls) {
      if (call?.id !== undefined && call.name !== undefined) yield { type: 'tool-input-available', toolCallId: call.id, toolName: call.name, input: json(call.arguments) }
    }
    yield { type: 'finish-step' }
    const place = metadataOf(this.first ?? m)
    const { model } = metadataOf(m)
    yield { type: 'finish', finishReason, ...(!this.goesOn && { messageMetadata: { ...place, ...(model !== undefined && { model }) } }) }
  }
}

interface ToolCallPiece {
  index: number
  id?: string
  function?: { name?: string; arguments?: string }
}
