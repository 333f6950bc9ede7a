// Draws the map on a canvas: only what is in view, thousands of dots in a few
// strokes.
import type { Fold, Forest } from '../state/forest'
import { number } from '../text/format'
import type { Size, View } from './view'
import { between, diamondAt, rowHeight, type Layout, type Spot } from './layout'

export interface Scene {
  layout: Layout
  /** Messages that were brought from other branches, and the heads of those. */
  grafts: Forest['grafts']
  view: View
  size: Size
  /** Messages on the shown branch. */
  branch: ReadonlySet<string>
  head: string | null
  /** Messages that the lit summary folds. */
  lit: ReadonlySet<string> | null
  /** The summary that applies to the shown branch. */
  applies: string | null
  hovered: { spot: Spot; fold: Fold | null } | null
  /** Where the keyboard is. */
  current: Spot | null
  focused: boolean
  /** The beginning of a message; null where the map has no room for words. */
  wordsOf: ((id: string) => string) | null
}

export interface Palette {
  line: string
  dot: string
  text: string
  ink: string
  ground: string
  bark: string
  here: string
  summary: string
}

/** paletteOf reads the colours from the page's style sheet. */
export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  return {
    line: colour('--map-line'), dot: colour('--map-dot'), text: colour('--muted'), ink: colour('--text'), ground: colour('--surface'),
    bark: colour('--bark'), here: colour('--here'), summary: colour('--summary'),
  }
}

/** legible is the zoom from which counts and words are written, and visible the one from which dots are more than dust. */
const legible = 0.55
const visible = 0.16

export function paint(canvas: HTMLCanvasElement, scene: Scene, colours: Palette, font: string) {
  const { view, size, layout } = scene
  const ratio = devicePixelRatio || 1
  const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)]
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width
    canvas.height = height
  }
  const c = canvas.getContext('2d')!
  c.setTransform(1, 0, 0, 1, 0, 0)
  c.clearRect(0, 0, width, height)
  c.setTransform(ratio * view.zoom, 0, 0, ratio * view.zoom, ratio * view.left, ratio * view.top)

  const top = Math.max(0, Math.floor(-view.top / view.zoom / rowHeight) - 1)
  const bottom = Math.min(layout.rows.length - 1, Math.ceil((size.height - view.top) / view.zoom / rowHeight) + 1)
  const left = (-view.left - 40) / view.zoom
  const right = (size.width - view.left + 40) / view.zoom
  const rows = layout.rows.slice(top, bottom + 1)

  lines(c, rows, scene, colours)
  twigs(c, scene, colours)
  const dots = rows.flatMap(row => between(row, left, right))
  if (view.zoom >= visible) drawDots(c, dots, scene, colours)
  diamonds(c, dots, scene, colours)
  if (view.zoom >= legible) counts(c, dots, colours, font)
  rings(c, scene, colours)
  if (scene.wordsOf && view.zoom >= legible) words(c, rows, scene, colours, font, ratio)
  scale(c, rows, scene, colours, font, ratio)
}

const onBranch = (spot: Spot, scene: Scene) => scene.branch.has(spot.item.end.id)

/** lines draws what joins the dots: all thin, then the lit range, then the shown branch. */
function lines(c: CanvasRenderingContext2D, rows: Spot[][], scene: Scene, colours: Palette) {
  const thin = new Path2D()
  const strong = new Path2D()
  const lit = new Path2D()
  for (const row of rows) {
    for (const spot of row) {
      if (spot.parent) {
        join(onBranch(spot, scene) ? strong : thin, spot.parent, spot)
        if (scene.lit?.has(spot.item.end.id) && scene.lit.has(spot.parent.item.end.id)) join(lit, spot.parent, spot)
      }
    }
  }
  c.lineCap = 'round'
  // On the screen, no line gets thinner than can be seen.
  const { zoom } = scene.view
  if (scene.lit) stroke(c, lit, colours.summary, Math.max(10, 5 / zoom), 0.36)
  stroke(c, thin, colours.line, Math.max(1.25, 0.7 / zoom), 1)
  stroke(c, strong, colours.bark, Math.max(2.75, 2 / zoom), 1)
}

/** twigs draws a dotted line from a branch to each message that was brought from it. */
function twigs(c: CanvasRenderingContext2D, scene: Scene, colours: Palette) {
  const path = new Path2D()
  for (const { knot, from } of scene.grafts) {
    const [to, source] = [scene.layout.byItem.get(knot.id), scene.layout.byItem.get(from)]
    if (!to || !source) continue
    const bend = Math.max(rowHeight, Math.abs(to.y - source.y) / 2)
    path.moveTo(source.x, source.y)
    path.bezierCurveTo(source.x, source.y + bend, to.x + (to.x === source.x ? rowHeight : 0), to.y + bend, to.x, to.y)
  }
  const width = Math.max(1.75, 1 / scene.view.zoom)
  c.setLineDash([0, 3 * width])
  stroke(c, path, colours.here, width, 1)
  c.setLineDash([])
}

function join(path: Path2D, from: Spot, to: Spot) {
  path.moveTo(from.x, from.y)
  if (from.x === to.x) return path.lineTo(to.x, to.y)
  const middle = from.y + rowHeight * 0.55
  path.bezierCurveTo(from.x, middle, to.x, to.y - rowHeight * 0.75, to.x, to.y)
  if (to.y - from.y > rowHeight) path.lineTo(to.x, to.y)
}

function stroke(c: CanvasRenderingContext2D, path: Path2D, colour: string, width: number, alpha: number) {
  c.globalAlpha = alpha
  c.strokeStyle = colour
  c.lineWidth = width
  c.stroke(path)
  c.globalAlpha = 1
}

/** drawDots draws messages as dots, a person's filled, and runs as longer marks. */
function drawDots(c: CanvasRenderingContext2D, spots: Spot[], scene: Scene, colours: Palette) {
  const groups = new Map<string, { fill: string; edge: string; path: Path2D }>()
  const group = (fill: string, edge: string) => {
    const name = fill + edge
    let g = groups.get(name)
    if (!g) groups.set(name, (g = { fill, edge, path: new Path2D() }))
    return g.path
  }
  for (const spot of spots) {
    const on = onBranch(spot, scene)
    const edge = spot.item.end.id === scene.head ? colours.here : on ? colours.bark : colours.dot
    const asked = spot.item.knot.role === 'user'
    const path = group(asked ? edge : colours.ground, edge)
    const r = on ? 4.5 : 3.75
    if (spot.item.gathered > 0) {
      path.moveTo(spot.x + 11, spot.y - r)
      path.roundRect(spot.x - 11, spot.y - r, 22, 2 * r, r)
    } else if (spot.item.count > 1) {
      path.moveTo(spot.x + r, spot.y - 7)
      path.roundRect(spot.x - r, spot.y - 9, 2 * r, 18, r)
    } else {
      path.moveTo(spot.x + r, spot.y)
      path.arc(spot.x, spot.y, r, 0, 2 * Math.PI)
    }
  }
  c.lineWidth = 1.5
  for (const { fill, edge, path } of groups.values()) {
    c.fillStyle = fill
    c.fill(path)
    c.strokeStyle = edge
    c.stroke(path)
  }
}

function diamonds(c: CanvasRenderingContext2D, spots: Spot[], scene: Scene, colours: Palette) {
  c.strokeStyle = colours.summary
  c.lineWidth = 1.5
  for (const spot of spots) {
    spot.item.end.summaries.forEach((fold, n) => {
      const { x, y } = diamondAt(spot, n)
      const r = scene.hovered?.fold === fold ? 6.5 : 5
      c.beginPath()
      c.moveTo(x, y - r)
      c.lineTo(x + r, y)
      c.lineTo(x, y + r)
      c.lineTo(x - r, y)
      c.closePath()
      c.fillStyle = fold.id === scene.applies ? colours.summary : colours.ground
      c.fill()
      c.stroke()
    })
  }
}

/** counts writes how many messages a run has, and how many a closed item hides. */
function counts(c: CanvasRenderingContext2D, spots: Spot[], colours: Palette, font: string) {
  c.font = `11px ${font}`
  c.fillStyle = colours.text
  c.textBaseline = 'middle'
  for (const spot of spots) {
    if (spot.item.gathered > 0) {
      c.textAlign = 'center'
      c.fillText(`×${spot.item.gathered}`, spot.x, spot.y + 13)
      c.textAlign = 'left'
      continue
    }
    const beside = spot.x + 10 + spot.item.end.summaries.length * 12
    if (spot.item.count > 1) c.fillText(String(spot.item.count), beside, spot.y)
    if (spot.item.hidden > 0) c.fillText(`+${spot.item.hidden}`, beside, spot.y + (spot.item.count > 1 ? 12 : 0))
  }
}

/** words writes the beginnings of messages: of the shown branch at its left, which is free, and of the last one in a row at its right. */
function words(c: CanvasRenderingContext2D, rows: Spot[][], scene: Scene, colours: Palette, font: string, ratio: number) {
  const { view, size } = scene
  c.setTransform(ratio, 0, 0, ratio, 0, 0)
  c.font = `12px ${font}`
  c.textBaseline = 'middle'
  const write = (spot: Spot, side: 'left' | 'right') => {
    if (spot.item.count > 1 || spot.item.gathered > 0) return
    const gap = 16 + (side === 'right' ? spot.item.end.summaries.length * 12 * view.zoom : 0)
    const x = spot.x * view.zoom + view.left + (side === 'right' ? gap : -gap)
    const place = side === 'right' ? size.width - x - 16 : Math.min(x - 64, 420)
    if (place < 60) return
    c.textAlign = side === 'right' ? 'left' : 'right'
    c.fillStyle = spot.item.knot.role === 'user' ? colours.ink : colours.text
    c.fillText(cut(c, scene.wordsOf!(spot.item.knot.id), place), x, spot.y * view.zoom + view.top)
  }
  for (const row of rows) {
    const straight = row.find(s => onBranch(s, scene))
    const last = row.at(-1)!
    if (straight) write(straight, 'left')
    if (last !== straight) write(last, 'right')
  }
}

/** cut is as much of a text as has room. */
function cut(c: CanvasRenderingContext2D, text: string, width: number): string {
  const all = c.measureText(text).width
  if (all <= width) return text
  return text.slice(0, Math.max(0, Math.floor((text.length * width) / all) - 2)).trimEnd() + '…'
}

/** apart is how far the marks of the scale are from one another at least, in pixels. */
const apart = 56

/** scale numbers the messages of the shown branch at the left edge, so that a long one tells how deep it is. */
function scale(c: CanvasRenderingContext2D, rows: Spot[][], scene: Scene, colours: Palette, font: string, ratio: number) {
  c.setTransform(ratio, 0, 0, ratio, 0, 0)
  c.font = `11px ${font}`
  c.textBaseline = 'middle'
  c.textAlign = 'left'
  let last = -apart
  for (const row of rows) {
    const y = row[0]!.y * scene.view.zoom + scene.view.top
    if (y - last < apart || y < 8 || y > scene.size.height - 8) continue
    const spot = row.find(s => onBranch(s, scene))
    if (!spot) continue
    last = y
    const from = spot.item.knot.depth + 1
    const to = spot.item.end.depth + 1
    const text = from === to ? number(from) : `${number(from)}–${number(to)}`
    const width = c.measureText(text).width
    c.fillStyle = colours.ground
    c.globalAlpha = 0.85
    c.fillRect(0, y - 8, width + 24, 16)
    c.globalAlpha = 1
    c.fillStyle = colours.line
    c.fillRect(0, y - 0.5, 8, 1)
    c.fillStyle = colours.text
    c.fillText(text, 12, y)
  }
}

/** rings mark where the reader is, where the pointer is and where the keyboard is. */
function rings(c: CanvasRenderingContext2D, scene: Scene, colours: Palette) {
  const ring = (spot: Spot, radius: number, width: number, dash: number[]) => {
    c.beginPath()
    if (spot.item.count > 1) c.roundRect(spot.x - radius, spot.y - 5 - radius, 2 * radius, 10 + 2 * radius, radius)
    else c.arc(spot.x, spot.y, radius, 0, 2 * Math.PI)
    c.setLineDash(dash)
    c.strokeStyle = colours.here
    c.lineWidth = width / Math.min(1, scene.view.zoom)
    c.stroke()
    c.setLineDash([])
  }
  const head = scene.head === null ? null : scene.layout.byItem.get(scene.head)
  if (head) ring(head, Math.max(9, 5 / scene.view.zoom), 2, [])
  if (scene.hovered && !scene.hovered.fold) ring(scene.hovered.spot, 7, 1.5, [])
  if (scene.focused && scene.current) ring(scene.current, 13, 1.5, [3, 3])
}
