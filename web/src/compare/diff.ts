// What differs between two texts, by words.

export interface Piece {
  text: string
  /** Whether the other text lacks it. */
  own: boolean
}

/** most is how many words a text may have to be compared; of longer ones nothing is marked. */
const most = 4000

/** most steps bounds the work where two texts have little in common. */
const mostSteps = 1500

/** diff gives a text in pieces, with what the other one lacks as pieces of its own; null where the two are too long, or too unlike. */
export function diff(text: string, other: string): Piece[] | null {
  const a = words(text)
  const b = words(other)
  if (a.length > most || b.length > most) return null
  const kept = common(a, b)
  if (!kept) return null
  const out: Piece[] = []
  a.forEach((word, i) => {
    const own = !kept.has(i)
    const last = out.at(-1)
    if (last?.own === own) last.text += word
    else if (own && out.length > 1 && last?.text.trim() === '') { // a space between two words that differ tells nothing
      out.pop()
      out.at(-1)!.text += last.text + word
    } else out.push({ text: word, own })
  })
  return out
}

/** words are the words of a text and what stands between them. */
const words = (text: string) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []

/** common gives the places in a of a longest common subsequence with b, by Myers' algorithm. */
function common(a: readonly string[], b: readonly string[]): Set<number> | null {
  const max = Math.min(a.length + b.length, mostSteps)
  const trace: Map<number, number>[] = []
  let reach = new Map<number, number>([[1, 0]])
  for (let d = 0; d <= max; d++) {
    trace.push(reach)
    reach = new Map(reach)
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      reach.set(k, x)
      if (x >= a.length && x - k >= b.length) return back(trace, a.length, b.length)
    }
  }
  return null
}

/** back goes the way of the algorithm back, and notes where it went through both texts. */
function back(trace: readonly Map<number, number>[], x: number, y: number): Set<number> {
  const kept = new Set<number>()
  for (let d = trace.length - 1; d >= 0; d--) {
    const reach = trace[d]!
    const k = x - y
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1))
    const from = down ? k + 1 : k - 1
    const fromX = d === 0 ? 0 : (reach.get(from) ?? 0)
    const fromY = d === 0 ? 0 : fromX - from
    while (x > fromX && y > fromY) {
      x--
      y--
      kept.add(x)
    }
    x = fromX
    y = fromY
  }
  return kept
}
