// The tags of a conversation.
import { useRef, useState } from 'preact/hooks'
import { reason } from '../api/http'
import { update } from '../state/actions'
import { conversation } from '../state/branch'
import { conversations, tags } from '../state/conversations'
import { dialog } from '../state/dialog'
import { nameOf } from '../text/format'
import { Modal } from './Modal'

export function TagsDialog({ id }: { id: string }) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState('')
  /** What was last asked for and isn't answered yet. */
  const wanted = useRef<string[] | null>(null)
  const c = conversations.value?.find(other => other.id === id) ?? (conversation.value?.id === id ? conversation.value : null)
  const close = () => (dialog.value = null)
  if (!c) return null
  const change = async (how: (tags: string[]) => string[]) => {
    const to = (wanted.current = how(wanted.current ?? c.tags))
    try {
      await update(id, { tags: to })
      setProblem('')
    } catch (error) {
      setProblem(reason(error))
    }
    if (wanted.current === to) wanted.current = null
  }
  const add = (tag: string) => {
    if (tag && !(wanted.current ?? c.tags).includes(tag)) void change(tags => [...tags, tag])
    setText('')
  }
  const others = tags.value.filter(t => !c.tags.includes(t.tag)).slice(0, 12)
  return (
    <Modal title={`Tags of “${nameOf(c)}”`} close={close}>
      <ul class="chips" aria-label="Its tags">
        {c.tags.map(tag => (
          <li key={tag} class="chip" dir="auto">
            {tag}
            <button type="button" aria-label={`Remove the tag ${tag}`} title="Remove" onClick={() => void change(tags => tags.filter(t => t !== tag))}>×</button>
          </li>
        ))}
      </ul>
      <form
        class="tag-form"
        onSubmit={event => {
          event.preventDefault()
          add(text.trim())
        }}
      >
        <input type="text" dir="auto" aria-label="New tag" placeholder="New tag" maxLength={100} value={text} autoFocus onInput={event => setText(event.currentTarget.value)} />
        <button type="submit" class="secondary" disabled={!text.trim()}>Add</button>
      </form>
      {problem && <p class="bad" role="alert">{problem}</p>}
      {others.length > 0 && (
        <>
          <h3>Used elsewhere</h3>
          <ul class="chips">
            {others.map(t => <li key={t.tag}><button type="button" class="chip" dir="auto" onClick={() => add(t.tag)}>{t.tag}</button></li>)}
          </ul>
        </>
      )}
      <div class="modal-foot"><button type="button" class="primary" onClick={close}>Done</button></div>
    </Modal>
  )
}
