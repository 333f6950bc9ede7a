// Markdown that grows at its end, as a reply does while it is streamed. What can
// no longer change is read once; only the last blocks are read again.
import { type Block, group, lex, longestLine, size } from './blocks'
import type { Token, TokensList } from 'marked'

/** A Fence is code whose end hasn't come yet. It is not read again while it grows. */
interface Fence {
  block: Block
  /** Where the block begins, in the whole text. */
  from: number
  end: RegExp
  /** How much of the whole text was searched for the end. */
  searched: number
}

/** begins is a fence without indentation, with its info string. */
const begins = /^(`{3,}|~{3,})([^\n]*)\n/

/** unsettled is how many tokens, blank lines aside, the next piece of text can still change: a list that goes on, say, and what stands before it. */
const unsettled = 2

export class Growing {
  private text = ''
  private settled: Block[] = []
  private from = 0
  private links: TokensList['links'] = {}
  private fence: Fence | null = null
  private line = 0 // where the last line begins
  /** How many characters were read as Markdown so far, again each time. */
  work = 0

  /** blocks takes the text apart, which should begin with what it was before. */
  blocks(given: string): Block[] {
    const text = given.includes('\r') ? given.replaceAll(/\r\n?/g, '\n') : given // as the lexer does
    if (!text.startsWith(this.text)) this.reset()
    this.text = text
    this.measure(text)
    const block = this.fence && this.within(text, this.fence)
    if (block) return [...this.settled, block]
    this.fence = null
    const tail = text.slice(this.from)
    this.work += tail.length
    const tokens = lex(tail, this.links)
    const blocks = group(tokens)
    this.settle(blocks, tokens, tail)
    this.open(blocks)
    return [...this.settled, ...blocks]
  }

  /** whole tells whether the blocks are those of the whole text: an address may come after its use, and a fence have no end yet. */
  whole = (blocks: readonly Block[]) => Object.keys(this.links).length === 0 && blocks.every(b => b.body === undefined)

  private reset() {
    this.settled = []
    this.from = 0
    this.links = {}
    this.fence = null
    this.line = 0
  }

  /** measure throws where a line is so long that reading it would take too much time. */
  private measure(text: string) {
    for (let end = text.indexOf('\n', this.line); end >= 0; end = text.indexOf('\n', this.line)) this.line = end + 1
    if (text.length - this.line > longestLine) throw new RangeError('a line is too long')
  }

  /** settle moves the blocks that can't change any more from the front of those that were read. */
  private settle(blocks: Block[], tokens: TokensList, tail: string) {
    let at = 0
    const solid = (all: readonly Token[]) => all.reduce((n, t) => n + (t.type === 'space' ? 0 : 1), 0)
    let after = solid(tokens)
    while (blocks.length > 1) {
      const [first] = blocks
      after -= solid(first!.tokens)
      // What the lexer wrote otherwise than it stands has no known end.
      if (after < unsettled || !tail.startsWith(first!.text, at)) break
      this.settled.push(blocks.shift()!)
      at += first!.text.length
    }
    this.from += at
    Object.assign(this.links, tokens.links)
  }

  /** open notes that the text ends within a long fence that stands alone in its block. */
  private open(blocks: Block[]) {
    const last = blocks.at(-1)
    const found = last && last.tokens.length === 1 && last.text.length >= size ? begins.exec(last.text) : null
    if (!found) return
    const end = new RegExp(`\\n {0,3}${found[1]![0]!}{${found[1]!.length},}[ \\t]*(?:\\n|$)`)
    if (end.test(last!.text) || !this.text.endsWith(last!.text)) return
    const length = this.text.length
    last!.body = found[0].length
    this.fence = { block: last!, from: length - last!.text.length, end, searched: length }
    this.settled.push(...blocks.slice(0, -1))
    this.from = this.fence.from
    blocks.splice(0, blocks.length - 1)
  }

  /** within is the fence's block as it is now, null where the fence has come to its end. */
  private within(text: string, fence: Fence): Block | null {
    // The last line may be the beginning of the end.
    const line = text.lastIndexOf('\n', fence.searched - 1)
    if (fence.end.test(text.slice(Math.max(fence.from + fence.block.body! - 1, line - 1)))) return null
    fence.searched = text.length
    return { ...fence.block, text: text.slice(fence.from) }
  }
}
