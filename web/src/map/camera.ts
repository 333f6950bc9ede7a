// The map's camera: what it shows, and how it gets there.
import { calm } from '../state/look'
import type { View } from './view'

const duration = 180

/** A Camera moves smoothly from view to view, unless the reader wants no motion. */
export class Camera {
  view: View = { left: 0, top: 0, zoom: 1 }
  private frame = 0

  constructor(private readonly moved: () => void) {}

  set(view: View) {
    cancelAnimationFrame(this.frame)
    this.view = view
    this.moved()
  }

  glide(to: View) {
    if (calm.matches) return this.set(to)
    cancelAnimationFrame(this.frame)
    const from = this.view
    const begin = performance.now()
    const step = (now: number) => {
      const t = Math.min(1, (now - begin) / duration)
      const eased = 1 - (1 - t) ** 3
      const mix = (a: number, b: number) => a + (b - a) * eased
      this.view = { left: mix(from.left, to.left), top: mix(from.top, to.top), zoom: mix(from.zoom, to.zoom) }
      this.moved()
      if (t < 1) this.frame = requestAnimationFrame(step)
    }
    this.frame = requestAnimationFrame(step)
  }

  stop() {
    cancelAnimationFrame(this.frame)
  }
}
