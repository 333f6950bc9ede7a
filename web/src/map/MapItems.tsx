// The map for those who don't see it: the item at the keyboard's place and
// those around it, as items of a tree. They lie over the drawing, unseen.
import * as messages from '../state/messages'
import { aboutIt } from '../text/content'
import { count } from '../text/format'
import { gist, useTexts } from './texts'
import type { View } from './view'
import type { Spot } from './layout'

export const nameOf = (spot: Spot) => `map-${spot.item.knot.id}`

export function MapItems({ spot, speaks, head, branch, view }: { spot: Spot | null; speaks: boolean; head: string | null; branch: ReadonlySet<string>; view: View }) {
  const around = spot ? [spot.parent, spot, ...spot.children.slice(0, 20), ...(spot.parent?.children ?? []).slice(0, 20)] : []
  useTexts(around.slice(0, 6).flatMap(s => (speaks && s && s.item.count === 1 && s.item.gathered === 0 ? [s.item.knot.id] : [])))
  if (!spot) return null
  return (
    <>
      {[...new Set(around)].filter(s => s !== null).map(s => {
        const siblings = s.parent?.children ?? [s]
        return (
          <div
            key={nameOf(s)} id={nameOf(s)} class="map-item" role="treeitem" aria-level={s.item.knot.depth + 1} aria-selected={s.item.end.id === head}
            aria-posinset={siblings.indexOf(s) + 1} aria-setsize={siblings.length}
            aria-expanded={s.item.hidden > 0 || s.item.count > 1 ? false : s.children.length > 0 ? true : undefined}
            aria-label={label(s, head, branch)}
            style={{ left: `${s.x * view.zoom + view.left}px`, top: `${s.y * view.zoom + view.top}px` }}
          />
        )
      })}
    </>
  )
}

function label({ item }: Spot, head: string | null, branch: ReadonlySet<string>): string {
  if (item.gathered > 0) return `${count(item.gathered, 'more version')}, ${count(item.hidden, 'message')} on them, closed`
  const what = item.count > 1 ? `${count(item.count, 'message')} without a fork` : `${aboutIt(messages.get(item.knot.id) ?? item.knot)}: ${gist(item.knot.id) || count(item.knot.tokens, 'token')}`
  const where = item.end.id === head ? ', you are here' : branch.has(item.end.id) ? ', on this branch' : ''
  const summaries = item.end.summaries.length ? `, ${count(item.end.summaries.length, 'summary', 'summaries')}` : ''
  const hidden = item.hidden > 0 ? `, ${count(item.hidden, 'message')} below, closed` : ''
  return what + where + summaries + hidden
}
