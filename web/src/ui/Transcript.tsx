// The branch, as far as it is on the screen. Its rows are as many as the branch
// has messages; those that aren't in view are a height and nothing else.
//
// What the reader looks at stays where it is, whatever grows, shrinks or comes
// in above: the list holds on to a row (its anchor), or to its own end while
// the reader is there.
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks'
import type { Context } from '../api/types'
import * as branch from '../state/branch'
import { context, cutoff } from '../state/context'
import * as messages from '../state/messages'
import * as replies from '../state/replies'
import { marked } from '../state/search'
import { FoldMarker } from './FoldMarker'
import { Icon } from './icons'
import { LiveRow } from './LiveRow'
import { markFound } from './marks'
import { MessageRow, type RowState } from './MessageRow'
import { Ruler } from './ruler'

type Anchor = 'end' | { row: number; y: number }

/** near is how close to the end, on the way down, counts as being there, in pixels. */
const near = 40

/** rest is how long after its last step a movement counts as over, in milliseconds. */
const rest = 120

/** margins are the room above the first row and below the last, in pixels. */
const above = 16
const below = 24

/** beyond is how much is rendered above and below what is in view, in pixels. */
const beyond = 600

export function Transcript() {
  const scroller = useRef<HTMLDivElement>(null)
  const list = useList()
  const [, redraw] = useReducer((n: number) => n + 1, 0)
  const p = branch.path.value!
  void messages.revision.value
  void marked.value
  const live = replies.at(p.conversation, branch.headOf(p))

  const keys = list.keysOf(p, live)
  list.ruler.reset(keys)
  list.take(p, branch.aim.value, scroller.current)
  const height = scroller.current?.clientHeight ?? innerHeight
  const top = list.top(height)
  const first = list.ruler.at(top - above - beyond)
  const last = Math.min(keys.length - 1, list.ruler.at(top - above + height + beyond))

  useLayoutEffect(() => {
    list.settle(scroller.current!, redraw)
    branch.want(first - 10, last)
    markFound(scroller.current!, p.conversation)
  })

  useLayoutEffect(() => {
    const frame = scroller.current!
    const observer = new ResizeObserver(() => frame.isConnected && list.settle(frame, redraw))
    list.observer = observer
    observer.observe(frame)
    for (const row of list.rows.keys()) observer.observe(row)
    return () => observer.disconnect()
  }, [])

  const c = contextOf(p)
  const rows = []
  for (let i = first; i <= last && i < keys.length; i++) {
    rows.push(
      <Row key={keys[i]} list={list} index={i}>
        {i < p.ids.length ? <Slot path={p} depth={i} context={c} busy={live?.running ?? false} /> : <LiveRow live={live!} />}
      </Row>,
    )
  }
  return (
    <div class="transcript-frame">
      <div
        class="transcript" ref={scroller} role="feed" aria-label="Branch" aria-busy={live?.running ?? false} tabIndex={0}
        onScroll={event => list.scrolled(event.currentTarget, redraw) && redraw(0)}
        onKeyDown={event => {
          if (event.key !== 'Home' && event.key !== 'End' || event.target !== event.currentTarget) return
          event.preventDefault() // the browser's way there is long
          list.go(event.key === 'End' ? 'end' : { row: 0, y: above }, event.currentTarget)
          redraw(0)
        }}
      >
        <div class="canvas" style={{ height: `${list.height(height)}px` }}>
          <div class="rows" style={{ transform: `translateY(${above + list.ruler.offset(first) - list.drift}px)` }}>{rows}</div>
        </div>
      </div>
      {list.anchor !== 'end' && list.total - top - height > 200 && (
        <button
          type="button" class="to-end" aria-label="To the newest message" title="To the newest message"
          onClick={() => {
            list.go('end', scroller.current!)
            redraw(0)
          }}
        >
          <Icon name="down" />
        </button>
      )}
    </div>
  )
}

/** contextOf is the context as far as it holds for a path: after a switch another one is on its way. */
function contextOf(p: branch.Path): Context | null {
  const c = context.value
  if (c?.conversation_id !== p.conversation) return null
  const end = cutoff.value
  const folded = end === null || (p.ids[end] ?? c.summary!.last_summarized_id) === c.summary!.last_summarized_id
  return c.head_id === branch.headOf(p) || (c.complete && folded) ? c : null
}

function Slot({ path, depth, context: c, busy }: { path: branch.Path; depth: number; context: Context | null; busy: boolean }) {
  void messages.revision.value
  const id = path.ids[depth]
  const message = id === undefined ? undefined : messages.get(id)
  const total = path.ids.length
  const end = cutoff.value
  const folded = c !== null && end !== null && depth >= c.counts.prefix && depth <= end
  const firstSeen = c && c.omitted_messages > 0 ? total - c.counts.tail : null
  const omitted = c !== null && firstSeen !== null && depth < firstSeen && depth >= c.counts.prefix && !folded
  const mark = branch.mark.value
  const state: RowState = {
    folded, omitted, busy,
    kept: folded && c.summary !== null && id !== undefined && c.summary.kept_ids.includes(id),
    fresh: mark !== null && mark.from !== null && depth >= mark.from,
    sought: mark !== null && id !== undefined && mark.id === id,
    last: depth === total - 1,
  }
  return (
    <>
      {c?.summary && end !== null && depth === end + 1 && <FoldMarker context={c} />}
      {firstSeen === depth && c && <p class="left-out">{c.omitted_messages} older messages don’t fit into the model’s window, and it doesn’t see them.</p>}
      {message ? <MessageRow message={message} state={state} total={total} /> : <Missing />}
    </>
  )
}

/** Missing is a message on its way. */
function Missing() {
  return (
    <div class="message missing" aria-hidden="true">
      <span class="bone short" />
      <span class="bone" />
      <span class="bone" />
    </div>
  )
}

function Row({ list, index, children }: { list: List; index: number; children: preact.ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const row = element.current!
    list.rows.set(row, index)
    list.observer?.observe(row)
    return () => {
      list.rows.delete(row)
      list.observer?.unobserve(row)
      if (row.contains(document.activeElement)) document.querySelector<HTMLElement>('.transcript')?.focus({ preventScroll: true })
    }
  }, [index])
  return <div class="row" ref={element}>{children}</div>
}

/** A List is what the transcript remembers between renders. */
class List {
  readonly ruler = new Ruler()
  readonly rows = new Map<HTMLElement, number>()
  observer: ResizeObserver | null = null
  anchor: Anchor = 'end'
  /**
   * drift is by how much the rows are drawn above where they would be. What is
   * found out about heights while the reader scrolls goes in here: setting the
   * scroll position would end the movement.
   */
  drift = 0
  private scrollTop = 0
  private resting = 0 // timer; 0 while nothing moves
  private taken: { path: branch.Path | null; aim: branch.Aim | null } = { path: null, aim: null }
  private keyed: { path: branch.Path | null; live: replies.Live | undefined; revision: number; keys: string[] } = {
    path: null, live: undefined, revision: -1, keys: [],
  }

  /** keysOf names the rows: one for each message, and one for a reply on its way. */
  keysOf(p: branch.Path, live: replies.Live | undefined): string[] {
    const revision = messages.revision.peek()
    const k = this.keyed
    if (k.path === p && k.live === live && k.revision === revision) return k.keys
    const keys = Array.from(p.ids, (id, depth) => id ?? `depth ${depth}`)
    if (live) keys.push('live')
    this.keyed = { path: p, live, revision, keys }
    return keys
  }

  /** take turns a new aim into an anchor. */
  take(p: branch.Path, aim: branch.Aim, scroller: HTMLElement | null) {
    if (this.taken.aim === aim) return
    this.scrollTop = scroller?.scrollTop ?? this.scrollTop
    const known = this.taken.path !== null
    this.taken = { path: p, aim }
    if (aim.to === 'end') this.anchor = 'end'
    else if (aim.to === 'show') this.anchor = { row: aim.depth, y: 48 }
    else if (known) {
      // The fork stays where it is, if it is in view; else it comes into it.
      const y = above + this.ruler.offset(aim.depth) - this.scrollTop - this.drift
      this.anchor = { row: aim.depth, y: y >= 0 && y < innerHeight * 0.8 ? y : 48 }
    }
  }

  /** go holds on to another place, whatever movement is under way. */
  go(anchor: Anchor, scroller: HTMLElement) {
    this.anchor = anchor
    this.scrollTop = scroller.scrollTop
  }

  get total() {
    return above + this.ruler.total + below
  }

  /** top is how far the list is to be scrolled. */
  top(height: number): number {
    if (this.anchor === 'end') return Math.max(0, this.total - height)
    return Math.max(0, above + this.ruler.offset(this.anchor.row) - this.anchor.y)
  }

  /** height is the list's: at least so much that it can be scrolled to its anchor. */
  height(viewport: number): number {
    return this.anchor === 'end' ? this.total : Math.max(this.total, this.top(viewport) + viewport)
  }

  /** settle measures what is rendered and scrolls to the anchor. */
  settle(scroller: HTMLElement, redraw: (n: number) => void) {
    // The reader may have moved, and the event be on its way. At the very end it may have been the browser: the list got shorter.
    const atEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1
    let news = !atEnd && this.scrolled(scroller, redraw)
    for (const [row, index] of this.rows) news = this.ruler.measure(index, row.getBoundingClientRect().height) || news
    if (news) redraw(0)
    const top = this.top(scroller.clientHeight)
    const ends = scroller.scrollTop <= 0 || scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1
    if (this.resting !== 0 && !ends) {
      this.drift = top - scroller.scrollTop
      return
    }
    // The list may have become longer, and have an end further down to scroll to.
    ;(scroller.firstElementChild as HTMLElement).style.height = `${this.height(scroller.clientHeight)}px`
    if (Math.abs(scroller.scrollTop - top) > 0.5) scroller.scrollTop = top
    if (this.drift !== 0) {
      this.drift = 0
      redraw(0)
    }
    this.scrollTop = scroller.scrollTop
  }

  /** scrolled follows the reader, and tells whether something is to be drawn. */
  scrolled(scroller: HTMLElement, redraw: (n: number) => void): boolean {
    if (Math.abs(scroller.scrollTop - this.scrollTop) < 1) return false // it was the list itself
    clearTimeout(this.resting)
    this.resting = setTimeout(() => {
      this.resting = 0
      if (scroller.isConnected) this.settle(scroller, redraw)
    }, rest)
    const down = scroller.scrollTop > this.scrollTop
    this.scrollTop = scroller.scrollTop
    const top = this.scrollTop + this.drift
    if (down && top + scroller.clientHeight >= this.total - near) this.anchor = 'end'
    else {
      const row = this.ruler.at(top - above)
      this.anchor = { row, y: above + this.ruler.offset(row) - top }
    }
    return true
  }
}

function useList(): List {
  const list = useRef<List | null>(null)
  return (list.current ??= new List())
}
