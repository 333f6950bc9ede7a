// What the next message will bring besides its text, and the button that picks it.
import { useRef } from 'preact/hooks'
import { Icon } from '../ui/icons'
import { draft } from '../state/drafts'
import { note } from '../state/notices'
import { bytes } from './bytes'
import * as store from './store'

/** Tray lists the files of the next message. */
export function Tray() {
  const all = store.waiting.value
  if (all.length === 0) return null
  return (
    <ul class="tray" aria-label="Files of the next message">
      {all.map(w => (
        <li key={w.key} class={w.stored ? '' : 'coming'} aria-busy={!w.stored}>
          {w.preview && <img src={w.preview} alt="" />}
          <span class="name">{w.name || 'picture'}</span>
          <span class="size">{w.stored ? bytes(w.size) : 'on its way…'}</span>
          <button type="button" class="quiet icon-only" aria-label={`Leave out ${w.name || 'picture'}`} onClick={() => store.drop(w.key)}><Icon name="close" /></button>
        </li>
      ))}
    </ul>
  )
}

/** PickButton picks files from the reader's disk. */
export function PickButton() {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <button type="button" class="attach tool-button" aria-label="Attach files" title="Attach pictures, PDFs or text" onClick={() => input.current!.click()}>
        <Icon name="plus" />
      </button>
      <input
        ref={input} type="file" multiple hidden class="attach-input"
        onChange={event => {
          store.attach(Array.from(event.currentTarget.files ?? []))
          event.currentTarget.value = ''
        }}
      />
    </>
  )
}

/** filesOf are the files that a paste or a drop brings. */
const filesOf = (data: DataTransfer | null): File[] => Array.from(data?.files ?? [])

/** long is how much pasted text becomes a file, in characters: a text field is slow with more. */
const long = 20_000

/** onPaste takes files from the clipboard, and makes a file of a long text. Other text is pasted as ever. */
export function onPaste(event: ClipboardEvent) {
  const files = filesOf(event.clipboardData)
  const text = event.clipboardData?.getData('text/plain') ?? ''
  if (files.length === 0 && text.length <= long) return
  event.preventDefault()
  if (files.length > 0) return store.attach(files)
  const [key] = store.attach([new File([text], 'pasted.txt', { type: 'text/plain' })])
  note('The long text is attached as a file.', {
    action: {
      label: 'Put it into the message',
      run: () => {
        store.drop(key!)
        draft.value += text
      },
    },
  })
}
