// A conversation's title being changed where it stands.
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Conversation } from '../api/types'
import { rename } from '../state/actions'

/** longest is a title's length, in characters; the server takes 1,000 bytes. */
const longest = 250

export function TitleField({ conversation: c, end, class: name }: { conversation: Conversation; end: () => void; class: string }) {
  const field = useRef<HTMLInputElement>(null)
  const left = useRef(false)
  useLayoutEffect(() => {
    field.current!.focus()
    field.current!.select()
  }, [])
  const leave = (title: string | null) => {
    if (left.current) return // a field that goes loses the focus, too
    left.current = true
    end()
    if (title !== null && title !== c.title) void rename(c.id, title)
  }
  return (
    <input
      ref={field} class={name} dir="auto" aria-label="Title" defaultValue={c.title} maxLength={longest}
      onBlur={event => leave(event.currentTarget.value.trim())}
      onKeyDown={event => {
        event.stopPropagation()
        if (event.key === 'Enter') leave(event.currentTarget.value.trim())
        else if (event.key === 'Escape') leave(null)
      }}
    />
  )
}
