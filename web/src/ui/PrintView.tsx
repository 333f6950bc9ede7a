// The whole branch on paper: the transcript has only what is in view.
import { useEffect, useState } from 'preact/hooks'
import { transcript } from '../api/coppice'
import type { Message } from '../api/types'
import { Attachments } from '../attachments/Attachments'
import { conversation as open } from '../state/branch'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { roleName, said } from '../text/content'
import { nameOf, whenFully } from '../text/format'
import { modelOf } from '../text/mark'
import { Markdown, Typed } from './Markdown'
import { ToolCalls } from './Tools'

/** longest is how long is waited for formulas to be set, in milliseconds. */
const longest = 3000

/** PrintView reads a branch, prints it, and goes. */
export function PrintView({ conversation, head }: { conversation: string; head: string }) {
  const [messages, setMessages] = useState<Message[] | null>(null)
  useEffect(() => {
    const abort = new AbortController()
    read(conversation, head, abort.signal).then(setMessages, error => {
      if (abort.signal.aborted) return
      dialog.value = null
      failed('Not printed')(error)
    })
    return () => abort.abort()
  }, [])
  useEffect(() => {
    if (messages) void set().then(() => {
      const { dataset } = document.documentElement
      const theme = dataset['theme']
      dataset['theme'] = 'light' // paper is
      print()
      dataset['theme'] = theme
      dialog.value = null
    })
  }, [messages])
  if (!messages) return <p class="progress" role="status">Reading the branch…</p>
  return (
    <div class="print">
      <h1 dir="auto">{open.value && nameOf(open.value)}</h1>
      {messages.map(m => (
        <article key={m.id} class={`message ${m.role}`}>
          <header><h2>{roleName(m.role)}</h2>{modelOf(m) && <span class="by">{modelOf(m)}</span>}<span class="meta">{whenFully(m.created_at)}</span></header>
          <div class="body">
            {m.role === 'assistant' ? <Markdown text={said(m)} /> : <Typed text={said(m)} />}
            <Attachments content={m.content} />
            <ToolCalls calls={m.tool_calls ?? []} />
          </div>
        </article>
      ))}
    </div>
  )
}

async function read(conversation: string, head: string, signal: AbortSignal): Promise<Message[]> {
  const pages: Message[][] = []
  for (let end: string | null = head; end !== null && !signal.aborted; end = pages.at(-1)![0]?.parent_id ?? null) {
    pages.push((await transcript(conversation, end, 500)).data)
  }
  return pages.reverse().flat()
}

/** set waits until the formulas are set. */
async function set() {
  const from = performance.now()
  while (document.querySelector('.print .math:not(.math-set)') && performance.now() - from < longest) await new Promise(done => setTimeout(done, 100))
}
