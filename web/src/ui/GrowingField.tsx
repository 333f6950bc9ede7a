// A text field that is as high as its text, up to a share of the window.
//
// The browser lays a text out to measure it, which takes long for a long one. One that
// fills the share in any case isn't measured.
import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'

/** full is how long a text is that fills the share, in characters. */
const full = 8000

export function GrowingField({ field, label, value, placeholder, onInput, onKeyDown }: {
  field: RefObject<HTMLTextAreaElement | null>
  label: string
  value: string
  placeholder?: string
  onInput: (text: string) => void
  onKeyDown: (event: KeyboardEvent) => void
}) {
  const fit = () => {
    const f = field.current!
    if (f.textLength > full) {
      if (f.style.height !== '100vh') f.style.height = '100vh'
      return
    }
    f.style.height = '0'
    f.style.height = `${f.scrollHeight}px`
  }
  useLayoutEffect(() => {
    const f = field.current!
    if (f.value !== value) f.value = value
    fit()
  }, [value])
  return (
    <textarea
      ref={field} class="field" dir="auto" rows={1} aria-label={label} placeholder={placeholder} spellcheck
      onInput={event => {
        onInput(event.currentTarget.value)
        fit()
      }}
      onKeyDown={onKeyDown}
    />
  )
}
