// A chat by the AI SDK's useChat over a Coppice server on the page's own origin:
// branches, edits, regenerations, and answers that go on when the page is loaded
// anew.
import { useChat } from '@ai-sdk/react'
import { CoppiceTransport, type ChatMessage } from '@coppice-chat/ai-sdk'
import { Coppice, uuidv7 } from '@coppice-chat/client'
import { useState, type FormEvent } from 'react'
import { createRoot } from 'react-dom/client'

const key = new URLSearchParams(location.search).get('key')
const transport = new CoppiceTransport({ client: new Coppice(key ? { apiKey: key } : {}) })
const id = location.hash.slice(1) || uuidv7()
history.replaceState(null, '', '#' + id)

function Chat({ loaded }: { loaded: ChatMessage[] }) {
  const { messages, sendMessage, regenerate, setMessages, stop, status, error } = useChat<ChatMessage>({ id, messages: loaded, transport, generateId: uuidv7, resume: true })
  const [text, setText] = useState('')
  const [edited, setEdited] = useState<string>()
  const [turning, setTurning] = useState(false)
  const running = status === 'submitted' || status === 'streaming'
  const busy = running || turning

  const send = (event: FormEvent) => {
    event.preventDefault()
    if (!text.trim() || busy) return
    void sendMessage(edited === undefined ? { text } : { text, messageId: edited }).then(reload)
    setText('')
    setEdited(undefined)
  }
  /** turn shows what is read, one reading at a time: an older one must not come last. */
  const turn = async (read: () => Promise<ChatMessage[] | undefined>) => {
    setTurning(true)
    try {
      const found = await read()
      if (found) setMessages(found)
    } finally {
      setTurning(false)
    }
  }
  // What the server stored tells how many versions of a message there are.
  const reload = () => turn(() => transport.load(id))
  const step = (message: ChatMessage, by: number) =>
    turn(async () => {
      const version = (await transport.versions(id, message))[message.metadata!.siblings.index - 1 + by]
      return version === undefined ? undefined : transport.switchTo(id, version)
    })
  return (
    <main>
      <div className="messages">
        {messages.map(m => (
          <div key={m.id} className={m.role}>
            {m.parts.map((part, i) => (part.type === 'text' ? <div key={i} className="text">{part.text}</div> : null))}
            <div className="actions">
              {m.metadata && m.metadata.siblings.count > 1 && (
                <>
                  <button aria-label="Previous version" disabled={busy} onClick={() => void step(m, -1)}>‹</button>
                  <span className="version">{m.metadata.siblings.index} of {m.metadata.siblings.count}</span>
                  <button aria-label="Next version" disabled={busy} onClick={() => void step(m, 1)}>›</button>
                </>
              )}
              {m.role === 'user' && <button disabled={busy} onClick={() => { setEdited(m.id); setText(m.parts.map(p => (p.type === 'text' ? p.text : '')).join('')) }}>Edit</button>}
              {m.role === 'assistant' && <button disabled={busy} onClick={() => void regenerate({ messageId: m.id }).then(reload)}>Regenerate</button>}
            </div>
          </div>
        ))}
        {error && <p role="alert">{error.message}</p>}
      </div>
      <form onSubmit={send}>
        <textarea aria-label="Message" placeholder="Message" rows={1} value={text} onChange={e => setText(e.target.value)} />
        {running ? <button type="button" onClick={() => void stop()}>Stop</button> : <button>{edited === undefined ? 'Send' : 'Save'}</button>}
      </form>
    </main>
  )
}

void transport.load(id).then(loaded => createRoot(document.getElementById('root')!).render(<Chat loaded={loaded} />))
