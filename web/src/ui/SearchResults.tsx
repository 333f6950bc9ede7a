// What a search found: conversations by their title, and messages.
import type { Hit } from '../api/types'
import { openConversation, openHit } from '../state/actions'
import { results, searching } from '../state/search'
import { roleName } from '../text/content'
import { count, when } from '../text/format'
import { found } from '../text/found'
import { arrows } from './Sidebar'

export function SearchResults() {
  const r = results.value
  if (!r) return <p class="sidebar-empty" role="status">Searching…</p>
  const nothing = r.titles.length === 0 && r.hits.length === 0
  return (
    <div class="list results" onKeyDown={arrows} aria-busy={searching.value}>
      <p class="unseen" role="status">{nothing ? 'Nothing found.' : `${count(r.titles.length, 'conversation')} and ${count(r.hits.length, 'message')} found.`}</p>
      {nothing && <p class="sidebar-empty">Nothing found. Words must all occur; "quoted words" stand together; -word must not occur.</p>}
      {r.titles.length > 0 && (
        <ul aria-label="Conversations">
          <li class="group"><h2>Conversations</h2></li>
          {r.titles.map(c => (
            <li key={c.id}><button type="button" class="entry-button" data-result onClick={() => openConversation(c.id)}>{c.title || 'Untitled'}</button></li>
          ))}
        </ul>
      )}
      {r.hits.length > 0 && (
        <ul aria-label="Messages">
          <li class="group"><h2>Messages</h2></li>
          {r.hits.map(hit => <HitRow key={hit.message.id} hit={hit} query={r.query} />)}
        </ul>
      )}
    </div>
  )
}

function HitRow({ hit, query }: { hit: Hit; query: string }) {
  const { message } = hit
  return (
    <li>
      <button type="button" class="entry-button hit" data-result onClick={() => void openHit(message.conversation_id, hit.head_id, message)}>
        <span class="hit-text">{found(hit.snippet, query).map(({ text, match }, i) => (match ? <mark key={i}>{text}</mark> : text))}</span>
        <span class="hit-meta">{roleName(message.role)} · {hit.title || 'Untitled'} · {when(message.created_at)}</span>
      </button>
    </li>
  )
}
