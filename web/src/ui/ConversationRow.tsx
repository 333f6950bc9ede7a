// One conversation of the list.
import { useRef, useState } from 'preact/hooks'
import { download } from '../api/coppice'
import type { Conversation } from '../api/types'
import { openConversation, rename } from '../state/actions'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { place } from '../state/place'
import { Icon } from './icons'
import { Menu } from './Menu'
import { confirmRemove } from './removal'

export function ConversationRow({ conversation: c, group }: { conversation: Conversation; group: string | null }) {
  const [renaming, setRenaming] = useState(false)
  const current = place.value.conversation === c.id
  return (
    <>
      {group && <li class="group" role="presentation"><h2>{group}</h2></li>}
      <li class={`entry ${current ? 'current' : ''}`}>
        {renaming ? (
          <Rename conversation={c} end={() => setRenaming(false)} />
        ) : (
          <a
            data-result href={`/c/${c.id}`} aria-current={current ? 'page' : undefined} title={c.title}
            onClick={event => {
              if (event.metaKey || event.ctrlKey || event.shiftKey) return
              event.preventDefault()
              openConversation(c.id)
            }}
            onKeyDown={event => event.key === 'F2' && setRenaming(true)}
          >
            {c.title || 'Untitled'}
          </a>
        )}
        <Menu
          label={`Actions of ${c.title || 'Untitled'}`} class="quiet icon-only"
          items={[
            { label: 'Rename', run: () => setRenaming(true) },
            { label: 'Export as JSONL', run: () => void download(c.id, 'jsonl').catch(failed('Not exported')) },
            { label: 'Delete…', run: () => (dialog.value = confirmRemove(c)), danger: true },
          ]}
        >
          <Icon name="more" />
        </Menu>
      </li>
    </>
  )
}

function Rename({ conversation: c, end }: { conversation: Conversation; end: () => void }) {
  const field = useRef<HTMLInputElement>(null)
  const save = () => {
    const title = field.current!.value.trim()
    end()
    if (title !== c.title) void rename(c.id, title)
  }
  return (
    <input
      ref={field} class="rename" aria-label="Title" defaultValue={c.title} maxLength={250} autoFocus onBlur={save} onFocus={event => event.currentTarget.select()}
      onKeyDown={event => {
        event.stopPropagation()
        if (event.key === 'Enter') save()
        else if (event.key === 'Escape') end()
      }}
    />
  )
}
