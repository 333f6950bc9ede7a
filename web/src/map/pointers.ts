// Mouse, pen, fingers and wheel on the map: dragging pans, pinching and
// Ctrl with the wheel zoom, the wheel alone pans.
export interface Gestures {
  pan: (dx: number, dy: number) => void
  zoom: (factor: number, x: number, y: number) => void
  hover: (x: number, y: number) => void
  leave: () => void
  click: (x: number, y: number, shift: boolean) => void
}

/** steady is how far a click may move, in pixels. */
const steady = 4

/** pointers listens on an element until the function that it gives is called. */
export function pointers(element: HTMLElement, g: Gestures): () => void {
  const down = new Map<number, { x: number; y: number }>()
  let moved = 0

  const at = (event: MouseEvent) => {
    const box = element.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top }
  }
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) return
    element.setPointerCapture(event.pointerId)
    down.set(event.pointerId, at(event))
    moved = 0
  }
  const onMove = (event: PointerEvent) => {
    const now = at(event)
    const before = down.get(event.pointerId)
    if (!before) return g.hover(now.x, now.y)
    down.set(event.pointerId, now)
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y)
    if (moved <= steady) return
    g.leave()
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1]
    if (!other) return g.pan(now.x - before.x, now.y - before.y)
    const span = (p: { x: number; y: number }) => Math.hypot(p.x - other.x, p.y - other.y)
    g.zoom(span(now) / Math.max(1, span(before)), (now.x + other.x) / 2, (now.y + other.y) / 2)
  }
  const onUp = (event: PointerEvent) => {
    const was = down.get(event.pointerId)
    down.delete(event.pointerId)
    if (was && event.type === 'pointerup' && moved <= steady) g.click(was.x, was.y, event.shiftKey)
  }
  const onWheel = (event: WheelEvent) => {
    event.preventDefault()
    const { x, y } = at(event)
    if (event.ctrlKey || event.metaKey) g.zoom(Math.exp(-event.deltaY * 0.01), x, y)
    else g.pan(-event.deltaX, -event.deltaY)
  }
  element.addEventListener('pointerdown', onDown)
  element.addEventListener('pointermove', onMove)
  element.addEventListener('pointerup', onUp)
  element.addEventListener('pointercancel', onUp)
  element.addEventListener('pointerleave', g.leave)
  element.addEventListener('wheel', onWheel, { passive: false })
  return () => {
    element.removeEventListener('pointerdown', onDown)
    element.removeEventListener('pointermove', onMove)
    element.removeEventListener('pointerup', onUp)
    element.removeEventListener('pointercancel', onUp)
    element.removeEventListener('pointerleave', g.leave)
    element.removeEventListener('wheel', onWheel)
  }
}
