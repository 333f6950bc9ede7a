// One conversation of the list.
import { useState } from 'preact/hooks'
import type { Conversation } from '../api/types'
import { openConversation } from '../state/actions'
import { running, unseen } from '../state/answers'
import { dialog } from '../state/dialog'
import { place } from '../state/place'
import { nameOf } from '../text/format'
import { deleteItem, orderItems } from './conversationMenu'
import { Glyph, openShape } from './Glyph'
import { Icon } from './icons'
import { Menu } from './Menu'
import { TitleField } from './TitleField'

export function ConversationRow({ conversation: c, group }: { conversation: Conversation; group: string | null }) {
  const [renaming, setRenaming] = useState(false)
  const current = place.value.conversation === c.id
  return (
    <>
      {group && <li class="group"><h2>{group}</h2></li>}
      <li class={`entry ${current ? 'current' : ''}`}>
        {renaming ? (
          <TitleField conversation={c} end={() => setRenaming(false)} class="rename" />
        ) : (
          <a
            data-result dir="auto" href={`/c/${c.id}`} aria-current={current ? 'page' : undefined} title={[c.title, ...c.tags].filter(Boolean).join(' · ')}
            onClick={event => {
              if (event.metaKey || event.ctrlKey || event.shiftKey) return
              event.preventDefault()
              openConversation(c.id)
            }}
            onKeyDown={event => event.key === 'F2' && setRenaming(true)}
          >
            <Glyph shape={current ? (openShape.value ?? c.shape) : c.shape} />
            {nameOf(c)}
          </a>
        )}
        <Sign id={c.id} />
        <Menu
          label={`Actions of ${nameOf(c)}`} class="quiet icon-only"
          items={[
            { label: 'Rename', run: () => setRenaming(true) },
            ...orderItems(c),
            { label: 'Export…', run: () => (dialog.value = { kind: 'export', conversation: c.id }) },
            deleteItem(c, 'Delete'),
          ]}
        >
          <Icon name="more" />
        </Menu>
      </li>
    </>
  )
}

/** Sign tells that an answer is on its way in a conversation, or has come unseen. */
function Sign({ id }: { id: string }) {
  const what = running.value.has(id) ? 'answering' : unseen.value.has(id) ? 'a new answer' : ''
  return what && <span class={`sign ${running.value.has(id) ? 'running' : ''}`} role="img" aria-label={what} title={what} />
}
