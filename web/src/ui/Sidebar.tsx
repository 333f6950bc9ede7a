// The conversations: search, the list, import.
import { useEffect, useRef } from 'preact/hooks'
import { openConversation } from '../state/actions'
import { conversation } from '../state/branch'
import { filter, listed, more, readMore } from '../state/conversations'
import { dialog } from '../state/dialog'
import { importFiles } from '../state/imports'
import { drawer, list, narrow, theme, type Theme } from '../state/look'
import { everywhere, query, scope } from '../state/search'
import { period } from '../text/format'
import { arrows } from './arrows'
import { focusComposer } from './Composer'
import { ConversationRow } from './ConversationRow'
import { Icon } from './icons'
import { ListFilter, ToArchive } from './ListFilter'
import { SearchFilter } from './SearchFilter'
import { SearchResults } from './SearchResults'

const command = /mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'

export function Sidebar() {
  return (
    <nav class={`sidebar ${drawer.value ? 'open' : ''}`} aria-label="Conversations">
      <div class="sidebar-head">
        <a
          class="brand" href="/"
          onClick={event => {
            event.preventDefault()
            openConversation(null)
          }}
        >
          Coppice
        </a>
        {!narrow.value && (
          <button type="button" class="tool-button" aria-label="Hide the list" title="Hide the list" onClick={() => (list.value = 'hidden')}><Icon name="left" /></button>
        )}
        <button
          type="button" class="tool-button" aria-label="New conversation" title="New conversation"
          onClick={() => {
            openConversation(null)
            requestAnimationFrame(focusComposer)
          }}
        >
          <Icon name="plus" />
        </button>
      </div>
      <SearchField />
      {query.value.trim() ? <><SearchFilter /><SearchResults /></> : <><ListFilter /><List /></>}
      <Foot />
    </nav>
  )
}

/** focusSearch puts the cursor into the search field, and opens the list where it is closed. It searches everywhere, or in the open conversation. */
export function focusSearch(here = false) {
  scope.value = { ...everywhere, here }
  drawer.value = true
  list.value = 'shown'
  const focus = () => {
    const field = document.querySelector<HTMLInputElement>('.search input')
    field?.focus()
    field?.select()
  }
  focus()
  // Once it can be seen; where it has the focus already, this would select what was typed meanwhile.
  requestAnimationFrame(() => document.activeElement?.closest('.search') || focus())
}

function SearchField() {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') {
      event.preventDefault()
      document.querySelector<HTMLElement>('.sidebar [data-result]')?.focus()
    } else if (event.key === 'Enter') document.querySelector<HTMLElement>('.sidebar .results [data-result]')?.click()
    else if (event.key === 'Escape' && query.peek()) {
      event.stopPropagation()
      query.value = ''
      scope.value = everywhere
    }
  }
  return (
    <div class="search">
      <Icon name="search" />
      <input
        type="search" aria-label="Search conversations and messages" placeholder={scope.value.here ? 'Find in this conversation' : 'Search'} value={query.value} spellcheck={false}
        onInput={event => (query.value = event.currentTarget.value)} onKeyDown={onKeyDown}
      />
      {!query.value && <kbd aria-hidden="true">{command}</kbd>}
    </div>
  )
}

function List() {
  const all = listed.value
  if (!all) return <Skeleton />
  const { archived, tag } = filter.value
  let group = ''
  const open = conversation.value
  const away = open !== null && !all.some(c => c.id === open.id) // further down than the list has been read
  return (
    <div class="list" onKeyDown={arrows}>
      {all.length === 0 && <p class="sidebar-empty">{archived ? 'Nothing is archived.' : tag ? 'No conversation has this tag.' : 'No conversations yet.'}</p>}
      <ul>
        {away && <ConversationRow key={open.id} conversation={open} group="Open" />}
        {all.map(c => {
          const its = c.pinned ? 'Pinned' : period(c.updated_at)
          const head = its !== group
          group = its
          return <ConversationRow key={c.id} conversation={c} group={head ? its : null} />
        })}
      </ul>
      {more.value !== null && <End />}
      <ToArchive />
    </div>
  )
}

/** End reads the next page when it comes into view. */
function End() {
  const element = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    const observer = new IntersectionObserver(entries => entries.some(e => e.isIntersecting) && void readMore())
    observer.observe(element.current!)
    return () => observer.disconnect()
  }, [more.value])
  return <p class="sidebar-empty" ref={element}>Reading more…</p>
}

function Skeleton() {
  return (
    <div class="list" aria-hidden="true">
      {[70, 55, 80, 62, 48].map(width => <span class="bone" key={width} style={{ width: `${width}%` }} />)}
    </div>
  )
}

const themes: Record<Theme, { next: Theme; icon: 'auto' | 'sun' | 'moon'; label: string }> = {
  auto: { next: 'light', icon: 'auto', label: 'Colours: as the system' },
  light: { next: 'dark', icon: 'sun', label: 'Colours: light' },
  dark: { next: 'auto', icon: 'moon', label: 'Colours: dark' },
}

function Foot() {
  const field = useRef<HTMLInputElement>(null)
  const look = themes[theme.value]
  return (
    <div class="sidebar-foot">
      <button type="button" class="foot-button" onClick={() => field.current!.click()}><Icon name="import" />Import</button>
      <input
        ref={field} type="file" multiple hidden aria-label="Files to import"
        onChange={event => {
          void importFiles(Array.from(event.currentTarget.files ?? []))
          event.currentTarget.value = ''
        }}
      />
      <button type="button" class="tool-button" aria-label="Export all conversations" title="Export all conversations" onClick={() => (dialog.value = { kind: 'export' })}><Icon name="export" /></button>
      <span class="spring" />
      <button type="button" class="tool-button" aria-label={look.label} title={look.label} onClick={() => (theme.value = look.next)}><Icon name={look.icon} /></button>
      <button type="button" class="tool-button" aria-label="Keyboard and help" title="Keyboard and help (?)" onClick={() => (dialog.value = { kind: 'help' })}><Icon name="help" /></button>
    </div>
  )
}

