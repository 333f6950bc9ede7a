// The map of the tree, beside the branch.
import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { showMessage } from '../state/actions'
import * as branchState from '../state/branch'
import { conversation, path } from '../state/branch'
import { context } from '../state/context'
import { pathTo } from '../state/forest'
import { dark } from '../state/look'
import { failed } from '../state/notices'
import { full } from '../state/sideSize'
import * as tree from '../state/tree'
import { Choice } from '../ui/Choice'
import { Icon } from '../ui/icons'
import { Camera } from './camera'
import { Glide } from './glide'
import { find, lay, spotOf, type Found, type Layout, type Spot } from './layout'
import { MapItems, nameOf } from './MapItems'
import { MapPreview } from './MapPreview'
import { folded, outline, runOf } from './outline'
import { paint, paletteOf, type Palette } from './paint'
import { pointers } from './pointers'
import { around, shows, type Size, whole, zoomed } from './view'
import { loadPreviews, previews, room, wordsOf } from './texts'

export function MapPanel() {
  const id = conversation.value?.id
  useEffect(() => {
    if (id) tree.load(id).catch(failed('The map could not be read'))
  }, [id])
  const forest = tree.forest.value
  if (!forest || forest.conversation !== id) return <p class="side-empty">Reading the tree…</p>
  if (forest.byId.size === 0) return <p class="side-empty">The map grows with the first message.</p>
  return <Map key={id} />
}

function Map() {
  const canvas = useRef<HTMLCanvasElement>(null)
  const frame = useRef<HTMLDivElement>(null)
  const opened = useSignal<ReadonlySet<string>>(new Set())
  const closed = useSignal<ReadonlySet<string>>(new Set())
  const spread = useSignal<ReadonlySet<string>>(new Set())
  const everything = useSignal(false)
  const size = useSignal<Size>({ width: 0, height: 0 })
  const hovered = useSignal<Found | null>(null)
  const current = useSignal<string | null>(null)
  const focused = useSignal(false)
  const moves = useSignal(0)
  const colours = useRef<Palette | null>(null)
  const moved = () => (moves.value = moves.peek() + 1)
  const camera = useMemo(() => new Camera(moved), [])

  const { head } = branchState
  const glide = useMemo(() => new Glide(moved), [])
  const branch = useComputed<ReadonlySet<string>>(() => {
    const knot = tree.forest.value?.byId.get(head.value ?? '')
    return new Set(knot ? pathTo(knot) : path.value?.ids.filter(id => id !== undefined))
  })
  const layout = useComputed(() =>
    lay(outline(tree.forest.value!, { opened: opened.value, closed: closed.value, spread: spread.value, everything: everything.value, head: head.value }), branch.value))
  const lit = useComputed(() => (hovered.value?.fold ? folded(hovered.value.fold) : null))
  const here = useComputed(() => spotOf(layout.value, path.value?.ids ?? [], (path.value?.ids.length ?? 0) - 1))
  const cursor = useComputed<Spot | null>(() => layout.value.byItem.get(current.value ?? '') ?? here.value)

  useLayoutEffect(() => {
    let refits = false
    const stop = full.subscribe(() => (refits = size.peek().width > 0)) // to the size that comes now
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = frame.current!
      const first = size.peek().width === 0
      size.value = { width, height }
      if (!first && refits) {
        refits = false
        fit()
      }
      if (first) begin(camera, layout.peek(), here.peek(), size.peek())
    })
    observer.observe(frame.current!)
    return () => {
      stop()
      observer.disconnect()
      camera.stop()
      glide.stop()
    }
  }, [])

  useSignalEffect(() => {
    void dark.value
    colours.current = frame.current ? paletteOf(frame.current) : null
    moved()
  })

  // Where the branch goes, the map goes along.
  useSignalEffect(() => {
    const spot = here.value
    const { width } = size.peek()
    if (spot && width > 0 && !shows(camera.view, spot.x, spot.y, size.peek())) camera.glide(around(spot.x, spot.y, camera.view.zoom, size.peek()))
    glide.to(layout.value) // which moves the spot itself
  })

  useSignalEffect(() => {
    if (size.value.width >= room) loadPreviews(tree.forest.value!.conversation)
  })

  useSignalEffect(() => {
    void moves.value
    void previews.value
    const scene = {
      layout: layout.value, grafts: tree.forest.value?.grafts ?? [], view: camera.view, size: size.value, branch: branch.value, head: head.value, lit: lit.value,
      applies: context.value?.summary?.id ?? null, wordsOf: size.value.width >= room ? wordsOf : null, hovered: hovered.value, current: cursor.value, focused: focused.value,
    }
    const frameId = requestAnimationFrame(() => {
      if (!canvas.current || scene.size.width === 0) return
      colours.current ??= paletteOf(frame.current!)
      paint(canvas.current, scene, colours.current, getComputedStyle(document.body).fontFamily)
    })
    return () => cancelAnimationFrame(frameId)
  })

  const toggle = (set: typeof opened, ids: string[]) => {
    const next = new Set(set.peek())
    const add = !next.has(ids[0]!)
    for (const each of ids) add ? next.add(each) : next.delete(each)
    set.value = next
  }
  const choose = (found: Found, shift: boolean) => {
    const { item } = found.spot
    current.value = item.knot.id
    if (found.fold) void showMessage(found.fold.cutoff.id)
    else if (item.gathered > 0) toggle(spread, [item.knot.parent?.id ?? ''])
    else if (item.count > 1) toggle(opened, runOf(item))
    else if (shift && (item.children.length > 0 || item.hidden > 0)) toggle(closed, [item.end.id])
    else void showMessage(item.knot.id)
  }
  const at = (x: number, y: number) => {
    const { left, top, zoom } = camera.view
    return find(layout.peek(), (x - left) / zoom, (y - top) / zoom, Math.max(14, 10 / zoom))
  }

  useEffect(
    () =>
      pointers(frame.current!, {
        pan: (dx, dy) => camera.set({ ...camera.view, left: camera.view.left + dx, top: camera.view.top + dy }),
        zoom: (factor, x, y) => camera.set(zoomed(camera.view, factor, x, y)),
        hover: (x, y) => (hovered.value = at(x, y)),
        leave: () => (hovered.value = null),
        click: (x, y, shift) => {
          const found = at(x, y)
          if (found) choose(found, shift)
        },
      }),
    [],
  )

  const centre = () => ({ x: size.peek().width / 2, y: size.peek().height / 2 })
  const zoomBy = (factor: number) => camera.glide(zoomed(camera.view, factor, centre().x, centre().y))
  const fit = () => camera.glide(whole(layout.peek(), size.peek()))
  const toHere = () => here.peek() && camera.glide(around(here.peek()!.x, here.peek()!.y, Math.max(camera.view.zoom, 0.8), size.peek()))

  const walk = (to: Spot | null | undefined) => {
    if (!to) return
    current.value = to.item.knot.id
    if (!shows(camera.view, to.x, to.y, size.peek())) camera.glide(around(to.x, to.y, camera.view.zoom, size.peek()))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const spot = cursor.peek()
    if (!spot || event.metaKey || event.ctrlKey || event.altKey) return
    const beside = (by: number) => {
      const row = layout.peek().rows.find(r => r.includes(spot))!
      return row[row.indexOf(spot) + by]
    }
    const acts: Record<string, () => void> = {
      ArrowUp: () => walk(spot.parent),
      ArrowDown: () => walk(spot.children.find(s => branch.peek().has(s.item.knot.id)) ?? spot.children[0]),
      ArrowLeft: () => walk(beside(-1)),
      ArrowRight: () => walk(beside(1)),
      Enter: () => choose({ spot, fold: null }, false),
      ' ': () => choose({ spot, fold: null }, true),
      '+': () => zoomBy(1.4),
      '=': () => zoomBy(1.4),
      '-': () => zoomBy(1 / 1.4),
      '0': fit,
      '.': toHere,
    }
    const act = acts[event.key]
    if (!act) return
    event.preventDefault()
    event.stopPropagation()
    act()
  }

  const item = size.value.width > 0 ? cursor.value : null // before, there are no items to name
  return (
    <div class="map">
      <div
        class="map-frame" ref={frame} role="tree" tabIndex={0} aria-label="Map of the conversation. Arrow keys walk, Enter goes to the message."
        aria-activedescendant={item ? nameOf(item) : undefined} onKeyDown={onKeyDown}
        onFocus={event => (focused.value = event.currentTarget.matches(':focus-visible'))} onBlur={() => (focused.value = false)}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <MapItems spot={item} speaks={focused.value} head={head.value} branch={branch.value} view={(void moves.value, camera.view)} />
        {hovered.value && <MapPreview found={hovered.value} view={camera.view} size={size.value} />}
        {focused.value && !hovered.value && cursor.value && <MapPreview found={{ spot: cursor.value, fold: null }} view={camera.view} size={size.value} walks />}
      </div>
      <div class="map-tools">
        <button type="button" class="tool-button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoomBy(1 / 1.4)}><Icon name="zoomOut" /></button>
        <button type="button" class="tool-button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(1.4)}><Icon name="zoomIn" /></button>
        <button type="button" class="tool-button" aria-label="Fit the whole tree" title="Fit (0)" onClick={fit}><Icon name="fit" /></button>
        <button type="button" class="tool-button" aria-label="Back to where you are" title="Here (.)" onClick={toHere}><Icon name="here" /></button>
        <span class="spring" />
        <Choice
          label="Depth" value={everything.value ? 'all' : 'forks'} choose={value => (everything.value = value === 'all')}
          choices={[['forks', 'Forks'], ['all', 'Every message']]}
        />
      </div>
    </div>
  )
}

/** begin shows the whole tree where it stays legible, else where the reader is. */
function begin(camera: Camera, layout: Layout, here: Spot | null, size: Size) {
  const all = whole(layout, size)
  camera.set(all.zoom >= 0.5 || !here ? all : around(here.x, here.y, 0.8, size))
}
