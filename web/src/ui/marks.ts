// Words that were searched for, marked in the transcript. They are painted over
// the text, which stays as it is. A browser that can't do that marks nothing.
import { marked } from '../state/search'
import { patternOf } from '../text/found'

const name = 'found'

/** most is how many words are marked at once. */
const most = 2000

/** markFound marks the words in the messages that are on the page. */
export function markFound(root: Element, conversation: string) {
  if (!('highlights' in CSS)) return
  const wanted = marked.peek()
  const pattern = wanted?.conversation === conversation ? patternOf(wanted.query) : null
  if (!pattern) return void CSS.highlights.delete(name)
  const ranges: Range[] = []
  for (const body of root.querySelectorAll('.message > .body')) {
    const walk = document.createTreeWalker(body, NodeFilter.SHOW_TEXT)
    while (walk.nextNode() && ranges.length < most) {
      const text = walk.currentNode as Text
      for (const match of text.data.matchAll(pattern)) {
        const range = new Range()
        range.setStart(text, match.index)
        range.setEnd(text, match.index + match[0].length)
        ranges.push(range)
      }
    }
  }
  CSS.highlights.set(name, new Highlight(...ranges))
}
