// A conversation's tree in twelve pixels: as long as its active branch, with twigs
// for what parts from it.
import { computed } from '@preact/signals'
import type { Conversation } from '../api/types'
import { path } from '../state/branch'
import { forest } from '../state/tree'

type Shape = Conversation['shape']

/** openShape is that of the open conversation, as it grows. */
export const openShape = computed<Shape>(() => {
  const f = forest.value
  const p = path.value
  if (!f || !p || f.conversation !== p.conversation || p.ids.length === 0) return undefined
  return { messages: f.byId.size, branch_messages: p.ids.length }
})

export function Glyph({ shape }: { shape: Shape }) {
  const long = shape?.branch_messages ?? 0
  const beside = (shape?.messages ?? 0) - long
  const top = Math.round(Math.max(2, 9 - 1.5 * Math.log2(1 + long)))
  const twigs = beside <= 0 ? 0 : beside * 2 < long ? 1 : beside < long * 2 ? 2 : 3
  const twig = (i: number) => `M6 ${11 - 2 * i}c0-3 ${i % 2 ? '-4-1-4-4' : '4-1 4-4'}`
  return (
    <svg class="glyph" width="12" height="12" aria-hidden="true">
      <path d={`M6 12V${top}${[0, 1, 2].slice(0, twigs).map(twig).join('')}`} />
      <circle cx="6" cy={top} r="1.2" />
    </svg>
  )
}
