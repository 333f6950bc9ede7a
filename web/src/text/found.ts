// Where the words that were searched for stand in a text.

export interface Stretch {
  text: string
  match: boolean
}

/**
 * patternOf finds the words of a query as the server does: whole and case aside, but for the last word, which may be the
 * beginning of one unless a blank or a quote follows it. It is null where the query has no word.
 */
export function patternOf(query: string): RegExp | null {
  const terms = query.trim().split(/\s+/).filter(term => !term.startsWith('-') && term.toLowerCase() !== 'or')
  const words = terms.flatMap(term => term.match(/[\p{L}\p{N}]+/gu) ?? [])
  if (words.length === 0) return null
  const begun = /[\p{L}\p{N}]$/u.test(query) ? words.at(-1)! : null
  const whole = [...words].sort((a, b) => b.length - a.length).map(word => `${word}(?![\\p{L}\\p{N}])`)
  return new RegExp(`(?<![\\p{L}\\p{N}])(${[...whole, ...(begun ? [`${begun}[\\p{L}\\p{N}]*`] : [])].join('|')})`, 'giu')
}

/** found takes a text apart at the words of a query. */
export function found(text: string, query: string): Stretch[] {
  const pattern = patternOf(query)
  if (!pattern) return [{ text, match: false }]
  return text.split(pattern).map((piece, i) => ({ text: piece, match: i % 2 === 1 }))
}
