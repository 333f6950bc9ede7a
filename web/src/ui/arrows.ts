/** arrows moves the focus between the entries of a list. */
export function arrows(event: KeyboardEvent) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (by === undefined) return
  const all = Array.from((event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[data-result]'))
  const at = all.indexOf(document.activeElement as HTMLElement)
  if (at < 0) return
  event.preventDefault()
  if (at + by < 0) document.querySelector<HTMLElement>('.search input')?.focus()
  else all[Math.min(at + by, all.length - 1)]?.focus()
}
