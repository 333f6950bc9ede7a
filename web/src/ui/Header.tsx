// The line above the branch: its title, its budget, and what opens beside it.
import { useState } from 'preact/hooks'
import type { Conversation } from '../api/types'
import { conversation, headOf, path, problem } from '../state/branch'
import { compact } from '../state/context'
import { dialog } from '../state/dialog'
import { drawer, list, narrow, panel, togglePanel } from '../state/look'
import { place } from '../state/place'
import { missing } from '../api/http'
import { nameOf } from '../text/format'
import { BudgetBar } from './BudgetBar'
import { deleteItem, orderItems } from './conversationMenu'
import { Icon } from './icons'
import { Menu } from './Menu'
import { printBranch } from './keys'
import { focusSearch } from './Sidebar'
import { TitleField } from './TitleField'

export function Header() {
  const c = conversation.value
  const toggle = (p: 'map' | 'context', label: string, letter: string) => (
    <button type="button" class="tool-button" aria-pressed={panel.value === p} aria-label={label} title={`${label} (${letter})`} onClick={() => togglePanel(p)}>
      <Icon name={p} />
    </button>
  )
  return (
    <header class="branch-head">
      {(narrow.value || list.value === 'hidden') && (
        <button
          type="button" class="tool-button" aria-label="Conversations" aria-expanded={narrow.value && drawer.value}
          onClick={() => (narrow.value ? (drawer.value = true) : (list.value = 'shown'))}
        >
          <Icon name="menu" />
        </button>
      )}
      {c ? <Title key={c.id} conversation={c} /> : <h1 class="title">{path.value ? '' : place.value.lost || missing(problem.value) ? 'Not found' : problem.value ? 'Not loaded' : 'New conversation'}</h1>}
      <span class="spring" />
      {c && (
        <>
          <BudgetBar />
          {toggle('map', 'Map', 'm')}
          {toggle('context', 'What the model sees', 'c')}
          <Menu
            label="Conversation" class="tool-button"
            items={[
              { label: 'Compact now', run: () => void compact() },
              { label: 'Compact with…', run: () => (dialog.value = { kind: 'compact' }) },
              { label: 'Find in this conversation', run: () => focusSearch(true) },
              { label: 'Share this branch…', run: () => share(c.id) },
              { label: 'Export…', run: () => (dialog.value = { kind: 'export', conversation: c.id, head: headOf(path.peek()) ?? undefined }) },
              { label: 'Print this branch', run: printBranch },
              { label: 'Compare branches…', run: () => compareBranches(c.id) },
              { label: 'Prompt and settings…', run: () => (dialog.value = { kind: 'settings' }) },
              ...orderItems(c),
              deleteItem(c, 'Delete the conversation'),
            ]}
          >
            <Icon name="more" />
          </Menu>
        </>
      )}
    </header>
  )
}

/** share opens the links of a conversation, if there is something to share. */
function share(conversation: string) {
  const head = headOf(path.peek())
  if (head) dialog.value = { kind: 'shares', conversation, head }
}

function compareBranches(conversation: string) {
  const head = headOf(path.peek())
  if (head) dialog.value = { kind: 'compare', of: { what: 'branches', conversation, head } }
}

/** Title is changed where it stands. */
function Title({ conversation: c }: { conversation: Conversation }) {
  const [editing, setEditing] = useState(false)
  if (editing) return <TitleField conversation={c} end={() => setEditing(false)} class="title-field" />
  return (
    <h1 class="title">
      <button type="button" dir="auto" title="Rename" onClick={() => setEditing(true)}>{nameOf(c)}</button>
    </h1>
  )
}
