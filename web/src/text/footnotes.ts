// Footnotes in Markdown: [^name] where one is referred to, and [^name]: text, which
// stands where it was written.
import type { TokenizerAndRendererExtension } from 'marked'
import { escape } from './formulas'

const name = String.raw`\[\^([^\]\s]{1,40})\]`
const reference = new RegExp('^' + name)
const note = new RegExp(String.raw`^ {0,3}${name}:[ \t]*([^\n]*(?:\n(?! {0,3}\[\^|[ \t]*(?:\n|$))[^\n]*)*)(?:\n+|$)`)

export const footnotes: TokenizerAndRendererExtension[] = [
  {
    name: 'footnote',
    level: 'block',
    start: src => {
      const at = src.search(/\n {0,3}\[\^/)
      return at < 0 ? undefined : at
    },
    tokenizer(src) {
      const found = note.exec(src)
      return found ? { type: 'footnote', raw: found[0], name: found[1]!, tokens: this.lexer.inlineTokens(found[2]!.trim()) } : undefined
    },
    renderer(token) {
      return `<p><sup>${escape(token['name'] as string)}</sup> ${this.parser.parseInline(token.tokens ?? [])}</p>\n`
    },
  },
  {
    name: 'footnote-reference',
    level: 'inline',
    start: src => {
      const at = src.indexOf('[^')
      return at < 0 ? undefined : at
    },
    tokenizer: src => {
      const found = reference.exec(src)
      return found ? { type: 'footnote-reference', raw: found[0], name: found[1]! } : undefined
    },
    renderer: token => `<sup>${escape(token['name'] as string)}</sup>`,
  },
]
