// How wide the pane on the right is, and whether it fills the window.
import { effect, signal } from '@preact/signals'

/** least and most are the widths that the pane can have, in pixels; the branch keeps some room. */
export const least = 280
const room = 640
export const most = () => Math.max(least, innerWidth - room)

const name = 'coppice.side'

/** width is what the reader made it, in pixels; null for the page's own. */
export const width = signal<number | null>(Number(localStorage.getItem(name)) || null)

/** full is whether the pane fills the window. */
export const full = signal(false)

export const widen = (to: number | null) => (width.value = to === null ? null : Math.round(Math.min(most(), Math.max(least, to))))

/** start puts the width on the page and keeps it. */
export function start() {
  effect(() => {
    const { style } = document.documentElement
    if (width.value === null) {
      style.removeProperty('--side')
      localStorage.removeItem(name)
    } else {
      style.setProperty('--side', `${Math.min(width.value, most())}px`)
      localStorage.setItem(name, String(width.value))
    }
  })
  addEventListener('resize', () => (width.value = width.peek() === null ? null : Math.min(width.peek()!, most())))
}
