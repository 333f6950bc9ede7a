// A message's text being edited, in its place.
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Message } from '../api/types'
import * as actions from '../state/actions'
import { failed } from '../state/notices'
import { rewrite } from '../state/settings'
import { said } from '../text/content'
import { focusComposer, touch } from './Composer'
import { GrowingField } from './GrowingField'

/** begun is what was typed, by message: scrolling away must not lose it. */
const begun = new Map<string, string>()

export function Editor({ message }: { message: Message }) {
  const field = useRef<HTMLTextAreaElement>(null)
  const answer = message.role === 'assistant' // nobody is asked for another
  useLayoutEffect(() => {
    const f = field.current!
    f.focus({ preventScroll: true })
    f.setSelectionRange(f.value.length, f.value.length)
  }, [])

  const end = () => {
    begun.delete(message.id)
    actions.editing.value = null
    document.querySelector<HTMLElement>(`[data-id="${message.id}"]`)?.focus({ preventScroll: true })
  }
  const send = () => {
    const text = field.current!.value
    if (!text.trim()) return
    begun.delete(message.id)
    if (!answer) {
      actions.edit(message, text)
      if (!touch.matches) focusComposer() // where a keyboard goes on
      return
    }
    actions.editing.value = null
    rewrite(message, text).catch(failed('The answer was not changed'))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.stopPropagation()
      end()
    } else if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault()
      send()
    }
  }
  return (
    <div class="editor">
      <GrowingField
        field={field} label="Edit the message" value={begun.get(message.id) ?? said(message)}
        onInput={text => void begun.set(message.id, text)} onKeyDown={onKeyDown}
      />
      <div class="editor-foot">
        <span class="hint">{answer ? 'Saving' : 'Sending'} makes a new branch. This one stays.</span>
        <button type="button" class="plain-button" onClick={end}>Cancel</button>
        <button type="button" class="primary" onClick={send}>{answer ? 'Save' : 'Send'} as new branch</button>
      </div>
    </div>
  )
}
