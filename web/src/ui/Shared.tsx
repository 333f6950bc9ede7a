// What a link shows: one branch, to be read.
import { useEffect, useState } from 'preact/hooks'
import { shared } from '../api/coppice'
import { reason } from '../api/http'
import type { Shared as Page, SharedMessage } from '../api/types'
import { attachments, roleName, said } from '../text/content'
import { count, when, whenFully } from '../text/format'
import { Markdown, Plain, Typed } from './Markdown'
import { ToolCalls } from './Tools'

export function Shared({ token }: { token: string }) {
  const [page, setPage] = useState<Page | null>(null)
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const read = async (before: Page | null) => {
    setBusy(true)
    try {
      const next = await shared(token, before?.next_cursor ?? null)
      setPage(before ? { ...before, data: [...next.data, ...before.data], next_cursor: next.next_cursor } : next)
      document.title = `${next.title || 'Untitled'} · Coppice`
    } catch (error) {
      setProblem(reason(error))
    }
    setBusy(false)
  }
  useEffect(() => void read(null), [token])
  if (!page) {
    return (
      <main class="shared" aria-label="Shared conversation">
        {problem ? <><h1>Nothing to see here</h1><p role="alert">{problem}</p></> : <p role="status">Loading…</p>}
      </main>
    )
  }
  const { summary } = page
  return (
    <main class="shared" aria-label="Shared conversation">
      <header>
        <h1 dir="auto">{page.title || 'Untitled'}</h1>
        <p class="hint" title={whenFully(page.created_at)}>
          One branch of a conversation, up to the message that it ended in when it was shared {when(page.created_at)}.
          {page.expires_at && ` The link ends ${whenFully(page.expires_at)}.`}
        </p>
      </header>
      {summary && (
        <details class="shared-summary">
          <summary>The summary that the model reads in place of the first {count(summary.messages, 'message')} {summary.imported && <span class="tag imported" title="Nobody has checked it against the messages.">imported</span>}</summary>
          <Plain text={said(summary)} />
        </details>
      )}
      {page.next_cursor && <button type="button" class="secondary" disabled={busy} onClick={() => void read(page)}>Earlier messages</button>}
      {problem && <p role="alert">{problem}</p>}
      <ol class="shared-messages">{page.data.map((m, i) => <li key={page.data.length - i}><Row message={m} /></li>)}</ol>
      {page.data.length === 0 && !page.next_cursor && <p>Nothing was said on this branch.</p>}
    </main>
  )
}

function Row({ message: m }: { message: SharedMessage }) {
  const text = said(m)
  const files = attachments(m.content)
  return (
    <article class={`message ${m.role}`}>
      <header>
        <h2>{m.name ? `${roleName(m.role)} (${m.name})` : roleName(m.role)}</h2>
        <span class="spring" />
        <span class="meta" title={whenFully(m.created_at)}>{when(m.created_at)}</span>
      </header>
      <div class="body" dir="auto">
        {m.role === 'tool' && <details class="rest"><summary>What the tool gave</summary><Plain text={text} /></details>}
        {m.role === 'assistant' && text && <Markdown text={text} />}
        {m.role === 'user' && text && <Typed text={text} />}
        {files.length > 0 && <ul class="attachments">{files.map((a, i) => <li key={i}>{a.image ? <img src={a.image} alt={a.name} /> : a.name}</li>)}</ul>}
        <ToolCalls calls={m.tool_calls ?? []} />
      </div>
    </article>
  )
}
