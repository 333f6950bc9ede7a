// Which conversations the list has: those of a tag, or the archived ones.
import { archives, filter, tags } from '../state/conversations'

/** most is how many tags are offered. */
const most = 12

export function ListFilter() {
  const { archived, tag } = filter.value
  const offered = tags.value.slice(0, most).map(t => t.tag)
  if (tag && !offered.includes(tag)) offered.push(tag)
  return (
    <>
      {archived && (
        <p class="list-archive">
          <span>Archive</span>
          <button type="button" class="plain-button" onClick={() => (filter.value = { archived: false, tag: '' })}>Back to the list</button>
        </p>
      )}
      {!archived && offered.length > 0 && (
        <ul class="chips list-tags" aria-label="Only conversations with a tag">
          {offered.map(t => (
            <li key={t}>
              <button type="button" class="chip" dir="auto" aria-pressed={t === tag} onClick={() => (filter.value = { archived, tag: t === tag ? '' : t })}>{t}</button>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** ToArchive leads to the archived conversations, if there are any, from the end of the list. */
export function ToArchive() {
  if (filter.value.archived || !archives.value) return null
  return <button type="button" class="plain-button to-archive" onClick={() => (filter.value = { archived: true, tag: '' })}>Archived conversations</button>
}
