// Where the next message is written.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { giveBack, take, waiting } from '../attachments/store'
import { onPaste, PickButton, Tray } from '../attachments/Tray'
import { missing } from '../api/http'
import * as actions from '../state/actions'
import { conversation, headOf, path, problem, toNewest } from '../state/branch'
import { gone } from '../state/connection'
import { dialog } from '../state/dialog'
import { draft } from '../state/drafts'
import { isBehind } from '../state/live'
import * as messages from '../state/messages'
import * as models from '../state/models'
import { failed } from '../state/notices'
import { place } from '../state/place'
import * as replies from '../state/replies'
import { Choice } from './Choice'
import { GrowingField } from './GrowingField'
import { Icon } from './icons'

/** touch is a device whose Enter key should make a line, as it has no Shift at hand. */
export const touch = matchMedia('(pointer: coarse)')

/** focusComposer puts the cursor where the next message is written. */
export const focusComposer = () => document.querySelector<HTMLTextAreaElement>('.composer textarea')?.focus()

/** ready tells whether there is something to send, and where. In place of a conversation that is gone, it begins a new one. */
function ready(): boolean {
  const lost = missing(problem.value) && place.value.head === null
  return (draft.value.trim() !== '' || waiting.value.length > 0) && (!problem.value || lost)
}

export function Composer() {
  const field = useRef<HTMLTextAreaElement>(null)
  const p = path.value
  const live = p ? replies.at(p.conversation, headOf(p)) : undefined
  const busy = live?.running ?? false
  const id = conversation.value?.id
  // The conversation in which what is written goes off when the answer ends.
  const [queued, queue] = useState<string | null>(null)
  const waits = queued !== null && queued === id

  useEffect(() => {
    if (!waits || busy) return
    queue(null)
    if (!live) send() // what failed is looked at first
  }, [waits, busy])

  useLayoutEffect(() => {
    if (!touch.matches && document.activeElement === document.body) field.current?.focus({ preventScroll: true })
  }, [id])

  const send = () => {
    const text = draft.peek()
    if (!ready()) return
    if (busy) return queue(id ?? null)
    if (isBehind()) return ask(text)
    const content = take(text)
    if (content === null) return
    draft.value = ''
    actions.send(text, content).catch((error: unknown) => {
      draft.value ||= text
      giveBack(content)
      failed('The message was not sent')(error)
    })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.isComposing && (event.metaKey || event.ctrlKey || (!event.shiftKey && !touch.matches))) {
      event.preventDefault()
      send()
    } else if (event.key === 'ArrowUp' && draft.peek() === '' && editLast()) event.preventDefault()
  }
  return (
    <form
      class="composer" onPaste={onPaste}
      onSubmit={event => {
        event.preventDefault()
        send()
      }}
    >
      <Tray />
      <GrowingField
        field={field} label="Message" value={draft.value} placeholder={gone.value ? 'Message… (it is kept until the server is back)' : 'Message…'}
        onInput={text => {
          draft.value = text
          queue(null)
        }}
        onKeyDown={onKeyDown}
      />
      <div class="composer-tools">
        <PickButton />
        <ModelPicker />
        <span class="spring" />
        {waits && (
          <p class="queued" role="status">
            Sent when the answer ends. <button type="button" class="plain-button" onClick={() => queue(null)}>Don’t send</button>
          </p>
        )}
        {busy && live ? (
          <button type="button" class="send stop" aria-label="Stop the answer" title="Stop (Esc)" onClick={() => void replies.stop(live).catch(failed('The answer goes on'))}>
            <Icon name="stop" />
          </button>
        ) : (
          <button type="submit" class="send" aria-label="Send" title="Send (⏎)" disabled={!ready()}>
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  )
}

/** ask asks where a message goes that somebody else was faster than. */
function ask(text: string) {
  const head = headOf(path.peek())!
  draft.value = ''
  dialog.value = {
    kind: 'behind',
    chosen: async how => {
      const content = how === 'cancel' ? null : take(text)
      if (content === null) {
        draft.value ||= text
        return
      }
      try {
        if (how === 'there') await toNewest(head, 'keep')
        await actions.send(text, content)
      } catch (error) {
        draft.value ||= text
        giveBack(content)
        throw error
      }
    },
  }
}

/** askSeveral has several models answer what is written, or else what was answered last. */
function askSeveral() {
  const last = messages.get(headOf(path.peek()) ?? '')
  if (draft.peek().trim() === '' && waiting.peek().length === 0 && (last?.role !== 'assistant' || last.parent_id === null)) return focusComposer()
  dialog.value = { kind: 'compare', of: { what: 'ask', message: draft.peek().trim() === '' && waiting.peek().length === 0 ? last! : null } }
}

/** ModelPicker chooses the model that answers next. Where there is but one, there is nothing to choose. */
function ModelPicker() {
  const all = models.models.value
  if (all.length < 2) return null
  return (
    <Choice
      label="Model" title="The model that answers" class="model-picker" value={models.chosen.value?.name ?? ''}
      choices={[...all.map(m => [m.name, m.name] as const), ['', 'Several side by side…']]} choose={name => (name ? models.choose(name) : askSeveral())}
    />
  )
}

/** editLast edits the last message of the user on the branch, if it is near. */
export function editLast(): boolean {
  const p = path.peek()
  for (const id of p?.ids.slice(-20).reverse() ?? []) {
    const m = id === undefined ? undefined : messages.get(id)
    if (m?.role !== 'user') continue
    actions.editing.value = m.id
    return true
  }
  return false
}
