// A dialog over the page. The browser keeps the focus in it and gives it back.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

export function Modal({ title, close, children, wide }: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = element.current!
    const before = document.activeElement
    dialog.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    }
  }, [])
  return (
    <dialog
      ref={element} aria-label={title}
      onCancel={event => {
        event.preventDefault()
        close()
      }}
      onKeyDown={event => event.stopPropagation()}
      onPointerDown={event => event.target === element.current && close()}
    >
      <div class={`modal ${wide ? 'wide' : ''}`}>
        <h2 dir="auto">{title}</h2>
        {children}
      </div>
    </dialog>
  )
}
