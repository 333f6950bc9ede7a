// A text field that is as high as its text, up to a share of the window.
import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'

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
      ref={field} class="field" dir="auto" rows={1} aria-label={label} placeholder={placeholder} defaultValue={value} spellcheck
      onInput={event => {
        onInput(event.currentTarget.value)
        fit()
      }}
      onKeyDown={onKeyDown}
    />
  )
}
