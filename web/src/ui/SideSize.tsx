// The edge of the pane on the right, which makes it wider, and the button that
// lets it fill the window.
import { useRef } from 'preact/hooks'
import { full, least, most, widen, width } from '../state/sideSize'
import { Icon } from './icons'

/** own is the width that the style sheet gives (--side), in pixels. */
const own = 376

/** step is how far an arrow key moves the edge, in pixels. */
const step = 32

export function SideEdge() {
  const element = useRef<HTMLDivElement>(null)
  const now = () => element.current!.parentElement!.getBoundingClientRect().width
  return (
    <div
      ref={element} class="side-edge" role="separator" aria-orientation="vertical" aria-label="Width of the pane" tabIndex={0}
      aria-valuenow={width.value ?? own} aria-valuemin={least} aria-valuemax={most()}
      onPointerDown={event => {
        event.currentTarget.setPointerCapture(event.pointerId)
        event.preventDefault()
      }}
      onPointerMove={event => event.currentTarget.hasPointerCapture(event.pointerId) && widen(innerWidth - event.clientX)}
      onDblClick={() => widen(null)}
      onKeyDown={event => {
        const to = { ArrowLeft: now() + step, ArrowRight: now() - step, Home: least, End: most() }[event.key]
        if (to === undefined) return
        event.preventDefault()
        event.stopPropagation()
        widen(to)
      }}
    />
  )
}

export function FullButton() {
  const label = full.value ? 'Beside the branch' : 'Full window'
  return (
    <button type="button" class="tool-button" aria-pressed={full.value} aria-label={label} title={label} onClick={() => (full.value = !full.value)}>
      <Icon name="full" />
    </button>
  )
}
