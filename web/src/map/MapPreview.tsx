// What lies under the pointer: the beginning of a message, a run, a summary.
import * as messages from '../state/messages'
import { aboutIt, calls, said } from '../text/content'
import { count, number, when } from '../text/format'
import type { Size, View } from './view'
import type { Found } from './layout'
import { folded } from './outline'
import { useTexts } from './texts'

const width = 240

/** MapPreview stands beside what the pointer is on, and for somebody who walks by keys at the end where they are not. */
export function MapPreview({ found, view, size, walks = false }: { found: Found; view: View; size: Size; walks?: boolean }) {
  const { spot, fold } = found
  const x = spot.x * view.zoom + view.left
  const y = spot.y * view.zoom + view.top
  const place = {
    left: `${Math.max(8, Math.min(x + 20, size.width - width - 8))}px`,
    ...(walks ? { [y > size.height / 2 ? 'top' : 'bottom']: '8px' } : y > size.height * 0.6 ? { bottom: `${size.height - y + 16}px` } : { top: `${y + 16}px` }),
    width: `${width}px`,
  }
  const { item } = spot
  return (
    <div class="map-preview" style={place} aria-hidden="true">
      {fold ? (
        <>
          <p class="preview-head">Summary · {fold.model}{fold.imported && ' · imported'}</p>
          <p>Folds {count(folded(fold).size, 'message')} into {number(fold.tokens)} tokens. {when(fold.createdAt)}</p>
        </>
      ) : item.gathered > 0 ? (
        <>
          <p class="preview-head">{number(item.gathered)} more versions</p>
          <p class="hint">{count(item.hidden, 'message')} on them. Click shows each of them.</p>
        </>
      ) : item.count > 1 ? (
        <>
          <p class="preview-head">{number(item.count)} messages without a fork</p>
          <p class="hint">Click shows each of them.</p>
        </>
      ) : (
        <>
          <p class="preview-head">{aboutIt(messages.get(item.knot.id) ?? item.knot)} · {number(item.knot.tokens)} tokens</p>
          <Text key={item.knot.id} id={item.knot.id} />
          {item.hidden > 0 ? <p class="hint">{count(item.hidden, 'message')} below, closed. Shift-click opens the branches.</p> : item.children.length > 1 && <p class="hint">Shift-click closes its branches.</p>}
        </>
      )}
    </div>
  )
}

function Text({ id }: { id: string }) {
  useTexts([id])
  const message = messages.get(id)
  if (!message) return <p class="preview-text">…</p>
  return <p class="preview-text" dir="auto">{said(message).slice(0, 280) || (calls(message) || 'nothing')}</p>
}
