// What part of the map is shown, and how large.
import type { Layout } from './layout'

/** A View maps a place (x, y) of the map to (x*zoom + left, y*zoom + top) on the screen. */
export interface View {
  left: number
  top: number
  zoom: number
}

export interface Size {
  width: number
  height: number
}

const least = 0.0005 // at which a path of half a million messages fits
const most = 2.5
const margin = 40

const limit = (zoom: number) => Math.min(most, Math.max(least, zoom))

/** zoomed is a view after zooming around a point of the screen. */
export function zoomed(v: View, factor: number, x: number, y: number): View {
  const zoom = limit(v.zoom * factor)
  const by = zoom / v.zoom
  return { zoom, left: x - (x - v.left) * by, top: y - (y - v.top) * by }
}

/** whole shows the whole map, no larger than life. */
export function whole({ bounds }: Layout, size: Size): View {
  const width = bounds.right - bounds.left
  const height = bounds.bottom - bounds.top
  const zoom = limit(Math.min(1, (size.width - 2 * margin) / Math.max(width, 1), (size.height - 2 * margin) / Math.max(height, 1)))
  return {
    zoom,
    left: size.width / 2 - ((bounds.left + bounds.right) / 2) * zoom,
    top: Math.max(margin, (size.height - height * zoom) / 2 < margin ? margin : Math.min(64, (size.height - height * zoom) / 2)) - bounds.top * zoom,
  }
}

/** around shows a place in the middle. */
export const around = (x: number, y: number, zoom: number, size: Size): View => ({
  zoom, left: size.width / 2 - x * zoom, top: size.height * 0.6 - y * zoom,
})

/** shows tells whether a place is in view, and not at the very edge. */
export function shows(v: View, x: number, y: number, size: Size): boolean {
  const [sx, sy] = [x * v.zoom + v.left, y * v.zoom + v.top]
  return sx >= margin / 2 && sx <= size.width - margin / 2 && sy >= margin / 2 && sy <= size.height - margin
}
