/** A ServerSentEvent is one event of a stream. */
export interface ServerSentEvent {
  id: string | undefined
  event: string
  data: string
}

/**
 * serverSentEvents reads a stream of events as HTML's standard says: lines end
 * with CR, LF or both, and an event that its blank line didn't end is dropped.
 */
export async function* serverSentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader() // Safari can't iterate over a stream
  const decoder = new TextDecoder()
  let rest = ''
  let next: { id?: string; event: string; data: string[] } = { event: 'message', data: [] }
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      // A CR at the end may be the first half of a CR LF.
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop()!
      for (const line of lines) {
        if (line === '') {
          if (next.data.length) yield { id: next.id, event: next.event, data: next.data.join('\n') }
          next = { event: 'message', data: [] }
          continue
        }
        const colon = line.indexOf(':')
        const field = colon < 0 ? line : line.slice(0, colon)
        const text = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
        if (field === 'data') next.data.push(text)
        else if (field === 'event') next.event = text
        else if (field === 'id') next.id = text
      }
    }
  } finally {
    reader.cancel().catch(() => {}) // it may be cut off already
  }
}
