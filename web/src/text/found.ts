// Where the words that were searched for stand in a text.

export interface Stretch {
  text: string
  match: boolean
}

/** found takes a text apart at the words of a query, which the server compares whole and case aside. */
export function found(text: string, query: string): Stretch[] {
  const words = query.split(/\s+/).filter(word => !word.startsWith('-') && word.toLowerCase() !== 'or')
    .flatMap(word => word.match(/[\p{L}\p{N}]+/gu) ?? [])
  if (words.length === 0) return [{ text, match: false }]
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${words.join('|')})(?![\\p{L}\\p{N}])`, 'giu')
  return text.split(pattern).map((piece, i) => ({ text: piece, match: i % 2 === 1 }))
}
