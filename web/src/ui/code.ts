// A long piece of code while it is streamed: what is there stays, and what comes
// is put below it. The page lays out a piece at a time.
import type { Block } from '../text/blocks'

/** least is how much code is shown anew with each piece, in characters, so that it has its colours. */
const least = 4000

/** piece is how much of the code is laid out as one, in characters. */
const piece = 4000

export class Code {
  private constructor(readonly key: string, readonly whole: string, private readonly element: Element, private length: number) {}

  /** of follows a block that was just put on the page, if that is a long fence that grows. whole names what was put there. */
  static of(block: Block, whole: string, element: HTMLElement): Code | null {
    const code = element.querySelector('pre > code')
    if (block.body === undefined || !code || block.text.length - block.body < least) return null
    if (!block.text.endsWith('\n')) trimEnd(code) // the last line goes on
    return new Code(block.key, whole, code, block.text.length)
  }

  /** takes tells whether a block is the same fence with more in it. */
  takes = (block: Block) => block.body !== undefined && block.key === this.key && block.text.length >= this.length

  /** grow adds what is new. A line that has begun goes on where it stands. */
  grow(block: Block) {
    let more = block.text.slice(this.length)
    if (!more || !this.takes(block)) return
    this.length = block.text.length
    let last = this.element.lastElementChild
    if (!last?.classList.contains('more')) last = null
    const into = last ?? this.element
    if (last ? last.textContent.length < piece : false) return last!.append(more)
    if (!into.textContent.endsWith('\n')) {
      const line = more.indexOf('\n') + 1 || more.length
      into.append(more.slice(0, line))
      more = more.slice(line)
    }
    if (!more) return
    last = document.createElement('span')
    last.className = 'more'
    last.append(more)
    this.element.append(last)
  }
}

/** trimEnd takes the line's end off that Markdown puts after all code. */
function trimEnd(code: Element) {
  let node: ChildNode | null = code.lastChild
  while (node && !(node instanceof Text)) node = node.lastChild
  if (node?.data.endsWith('\n')) node.deleteData(node.data.length - 1, 1)
}
