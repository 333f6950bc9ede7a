// A menu that a button opens: arrow keys move in it, Escape and a click
// elsewhere close it.
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface Item {
  label: string
  run: () => void
  danger?: boolean
  /** Of a choice: whether it is the one that holds. */
  chosen?: boolean
}

export function Menu({ label, items, children, class: name = 'quiet', start, ...more }: {
  label: string
  items: Item[]
  children: ComponentChildren
  class?: string
  /** The list begins where its button does, and else it ends there. */
  start?: boolean
} & Pick<ButtonHTMLAttributes, 'value' | 'name' | 'title' | 'aria-invalid' | 'aria-label'>) {
  const [open, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const list = useRef<HTMLDivElement>(null)

  const close = () => {
    setOpen(false)
    button.current?.focus()
  }

  useLayoutEffect(() => {
    if (!open) return
    list.current!.showPopover() // above everything, and in the window's coordinates wherever its button is
    place(button.current!, list.current!, start)
    const all = entries(list.current!)
    ;(all.find(e => e.ariaChecked === 'true') ?? all[0])?.focus()
  }, [open])

  useEffect(() => {
    if (!open) return
    const elsewhere = (event: Event) => {
      if (!root.current?.contains(event.target as globalThis.Node)) setOpen(false)
    }
    const scrolled = () => button.current && list.current && place(button.current, list.current, start) // which may be gone already
    document.addEventListener('pointerdown', elsewhere)
    document.addEventListener('scroll', scrolled, true)
    return () => {
      document.removeEventListener('pointerdown', elsewhere)
      document.removeEventListener('scroll', scrolled, true)
    }
  }, [open])

  const onKeyDown = (event: KeyboardEvent) => {
    const all = entries(list.current!)
    const at = all.indexOf(document.activeElement as HTMLElement)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key]
    if (to !== undefined) {
      event.preventDefault()
      all[(to + all.length) % all.length]?.focus()
    } else if (event.key === 'Escape') {
      event.preventDefault() // a dialog around it stays
      event.stopPropagation()
      close()
    } else if (event.key === 'Tab') setOpen(false)
    else if (event.key.length === 1) {
      const begins = (e: HTMLElement) => e.innerText.toLowerCase().startsWith(event.key.toLowerCase())
      ;[...all.slice(at + 1), ...all.slice(0, at + 1)].find(begins)?.focus()
    }
  }

  return (
    <div class="menu" ref={root}>
      <button
        ref={button} type="button" class={name} aria-label={label} title={label} {...more} aria-haspopup="menu" aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {children}
      </button>
      {open && (
        <div class="menu-list" role="menu" popover="manual" aria-label={label} ref={list} onKeyDown={onKeyDown}>
          {items.map(item => (
            <button
              key={item.label} type="button" role={item.chosen === undefined ? 'menuitem' : 'menuitemradio'} aria-checked={item.chosen} tabIndex={-1}
              class={item.danger ? 'danger' : ''} dir="auto"
              onClick={() => {
                close()
                item.run()
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}

const entries = (list: HTMLElement) => Array.from(list.querySelectorAll<HTMLElement>('[role^=menuitem]'))

/** place puts the list under its button, or above it, inside the window. */
function place(button: HTMLElement, list: HTMLElement, start?: boolean) {
  const at = button.getBoundingClientRect()
  const { width, height } = list.getBoundingClientRect()
  const below = at.bottom + 4 + height <= innerHeight - 8
  list.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px`
  list.style.left = `${Math.max(8, Math.min(start ? at.left : at.right - width, innerWidth - width - 8))}px`
}
