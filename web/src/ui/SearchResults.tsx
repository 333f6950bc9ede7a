// What a search found: conversations by their title, and messages in folders of
// their conversations.
import { useState } from 'preact/hooks'
import type { Hit } from '../api/types'
import { openConversation, openHit } from '../state/actions'
import { waiting } from '../state/deletions'
import { type Folder, marked, readMore, results, searching } from '../state/search'
import { aboutIt } from '../text/content'
import { count, nameOf, when } from '../text/format'
import { found } from '../text/found'
import { arrows } from './arrows'

/** first is how many hits of a folder are shown at once. */
const first = 3

export function SearchResults() {
  const all = results.value
  const gone = (id: string) => waiting.value.has(id)
  const r = all && { ...all, titles: all.titles.filter(c => !gone(c.id)), folders: all.folders.filter(f => !gone(f.conversation)) }
  if (!r) return <p class="sidebar-empty" role="status">Searching…</p>
  const hits = r.folders.reduce((n, f) => n + f.hits.length, 0)
  const nothing = r.titles.length === 0 && hits === 0
  return (
    <div class="list results" onKeyDown={arrows} aria-busy={searching.value}>
      <p class="unseen" role="status">{nothing ? 'Nothing found.' : `${count(r.titles.length, 'conversation')} and ${count(hits, 'message')} found${r.more ? ', and more' : ''}.`}</p>
      {nothing && <p class="sidebar-empty">Nothing found. Words must all occur; "quoted words" stand together; -word must not occur.</p>}
      {r.titles.length > 0 && (
        <section class="group-of" aria-label="Conversations">
          <h2>Conversations</h2>
          <ul>
            {r.titles.map(c => (
              <li key={c.id}><button type="button" class="entry-button" dir="auto" data-result onClick={() => openConversation(c.id)}>{nameOf(c)}</button></li>
            ))}
          </ul>
        </section>
      )}
      {r.folders.map(folder => <FolderView key={folder.conversation} folder={folder} query={r.query} />)}
      {r.more && (
        <button type="button" class="entry-button more-hits" data-result disabled={searching.value} onClick={readMore}>{searching.value ? 'Searching…' : 'More messages'}</button>
      )}
    </div>
  )
}

/** FolderView lists what was found in one conversation, all of it on demand. */
function FolderView({ folder, query }: { folder: Folder; query: string }) {
  const [open, setOpen] = useState(false)
  const shown = open ? folder.hits : folder.hits.slice(0, first)
  return (
    <section class="group-of" aria-label={`Messages of ${folder.title || 'Untitled'}`}>
      <h2 dir="auto">{folder.title || 'Untitled'}<span class="group-count">{folder.hits.length}</span></h2>
      <ul>
        {shown.map(hit => <HitRow key={hit.message.id} hit={hit} query={query} />)}
        {shown.length < folder.hits.length && (
          <li><button type="button" class="entry-button more-hits" data-result onClick={() => setOpen(true)}>{count(folder.hits.length - first, 'more message')} here</button></li>
        )}
      </ul>
    </section>
  )
}

function HitRow({ hit, query }: { hit: Hit; query: string }) {
  const { message } = hit
  const open = () => {
    marked.value = { conversation: message.conversation_id, query }
    void openHit(message.conversation_id, hit.head_id, message)
  }
  return (
    <li>
      <button type="button" class="entry-button hit" data-result onClick={open}>
        <span class="hit-text" dir="auto">{found(hit.snippet, query).map(({ text, match }, i) => (match ? <mark key={i}>{text}</mark> : text))}</span>
        <span class="hit-meta">{aboutIt(message)} · {when(message.created_at)}</span>
      </button>
    </li>
  )
}
