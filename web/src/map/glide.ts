// How the map goes from one layout to the next: each dot to its new place, and one
// that was not there out of the message above it, as a twig grows.
import { calm } from '../state/look'
import type { Layout, Spot } from './layout'

const duration = 180

/** most is how many dots move; more would not keep up. */
const most = 3000

/** Glide moves the spots of the layout that it is given last. */
export class Glide {
  private frame = 0
  private before: Layout | null = null

  constructor(private readonly moved: () => void) {}

  to(layout: Layout) {
    const { before } = this
    if (before === layout) return
    cancelAnimationFrame(this.frame)
    this.before = layout
    if (!before || calm.matches || layout.byItem.size > most) return
    const moves: { spot: Spot; from: { x: number; y: number }; to: { x: number; y: number } }[] = []
    const placeOf = new Map<Spot, { x: number; y: number }>()
    for (const spot of layout.rows.flat()) { // parents first
      const old = before.byItem.get(spot.item.knot.id)
      const from = old ? { x: old.x, y: old.y } : ((spot.parent && placeOf.get(spot.parent)) ?? { x: spot.x, y: spot.y })
      placeOf.set(spot, from)
      if (from.x !== spot.x || from.y !== spot.y) moves.push({ spot, from, to: { x: spot.x, y: spot.y } })
    }
    if (moves.length === 0) return
    const begin = performance.now()
    const step = (now: number) => {
      const t = Math.min(1, Math.max(0, (now - begin) / duration))
      const eased = 1 - (1 - t) ** 3
      for (const { spot, from, to } of moves) {
        spot.x = from.x + (to.x - from.x) * eased
        spot.y = from.y + (to.y - from.y) * eased
      }
      this.moved()
      if (t < 1) this.frame = requestAnimationFrame(step)
    }
    step(begin)
  }

  stop() {
    cancelAnimationFrame(this.frame)
  }
}
