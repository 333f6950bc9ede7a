// ‹ 2/3 ›: which of its siblings a message is, and the way to the others.
import { Fragment } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Message } from '../api/types'
import { step, wishFocus } from '../state/actions'
import { toNewest } from '../state/branch'
import type { Knot } from '../state/forest'
import { failed } from '../state/notices'
import type { Live } from '../state/replies'
import { forest } from '../state/tree'
import { Icon } from './icons'

/** besides are the versions that stand beside a reply on its way. */
export function besides({ conversation, parent }: Live): Knot[] {
  const f = forest.value
  if (f?.conversation !== conversation) return []
  return parent === null ? f.roots : (f.byId.get(parent)?.children ?? [])
}

/** LiveSwitch leads from a reply on its way, which is no message yet, to the others. */
export function LiveSwitch({ others }: { others: readonly Knot[] }) {
  const count = others.length + 1
  if (count < 2) return null
  const back = () => void toNewest(others.at(-1)!.id, 'keep').catch(failed('The branch could not be switched'))
  return (
    <>
      <Twigs others={Math.min(count - 1, 3)} />
      <div class="siblings" role="group" aria-label={`Version ${count} of ${count}`}>
        <button type="button" aria-label="Previous version" onClick={back}><Icon name="left" /></button>
        <span aria-hidden="true">{count}/{count}</span>
        <button type="button" aria-label="Next version" disabled><Icon name="right" /></button>
      </div>
    </>
  )
}

export function SiblingSwitch({ message }: { message: Message }) {
  const root = useRef<HTMLDivElement>(null)
  const { index, count } = message.siblings

  useLayoutEffect(() => {
    const wish = wishFocus.peek()
    if (wish?.depth !== message.depth || wish.left === message.id || !root.current) return
    wishFocus.value = null
    root.current.focus({ preventScroll: true })
  })

  if (count < 2) return null
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (by === undefined) return
    event.preventDefault()
    event.stopPropagation()
    void step(message, by)
  }
  return (
    <>
      <Twigs others={Math.min(count - 1, 3)} />
      <div
        class="siblings" ref={root} role="group" tabIndex={0} onKeyDown={onKeyDown}
        aria-label={`Version ${index} of ${count}. Left and right arrow keys switch.`}
      >
        <button type="button" tabIndex={-1} aria-label="Previous version" disabled={index === 1} onClick={() => void step(message, -1)}>
          <Icon name="left" />
        </button>
        <span aria-hidden="true">{index}/{count}</span>
        <button type="button" tabIndex={-1} aria-label="Next version" disabled={index === count} onClick={() => void step(message, 1)}>
          <Icon name="right" />
        </button>
      </div>
    </>
  )
}

/** Twigs are the other versions, up to three, as stubs of the line beside the branch. */
function Twigs({ others }: { others: number }) {
  return (
    <svg class="twigs" width={12 + 9 * others} height="28" aria-hidden="true">
      {Array.from({ length: others }, (_, i) => 16 + 9 * i).map(x => <Fragment key={x}><path d={`M1 0C1 12 ${x} 4 ${x} 17`} /><circle cx={x} cy="20" r="3" /></Fragment>)}
    </svg>
  )
}
