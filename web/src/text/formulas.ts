// Formulas in Markdown: \(…\) and $…$ in a line, \[…\] and $$…$$ on lines of their own.
// A single $ counts as in Pandoc: no blank stands inside the two, and no digit behind the
// second, so that prices stay prices. Markdown alone would eat the backslashes. A
// formula stays as it was written until math.ts, which is loaded when there is one,
// gives it its shape.
import type { TokenizerAndRendererExtension, Tokens } from 'marked'

/** longest is how long a formula may be, in characters. */
const longest = 4000

/** escape makes a text safe between tags. */
export const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const block = new RegExp(String.raw`^ {0,3}(?:\\\[[^]{1,${longest}}?\\\]|\$\$[^]{1,${longest}}?\$\$)[ \t]*(?:\n+|$)`)
const inline = new RegExp(String.raw`^(?:\\\([^]{1,${longest}}?\\\)|\\\[[^]{1,${longest}}?\\\]|\$\$(?!\$)[^]{1,${longest}}?\$\$)`)
const dollars = new RegExp(String.raw`^\$(?![\s$])(?:\\[^]|[^$\\]){1,${longest}}?(?<!\s)\$(?![\d$])`)
const blank = /\n[ \t]*\n/

/** tokenize gives the formula at the start of a text. No formula goes across an empty line, as in TeX. */
function tokenize(type: string, pattern: RegExp, src: string): Tokens.Generic | undefined {
  const found = pattern.exec(src)
  const text = found?.[0].trim()
  if (!text || blank.test(text) || bare(text) === '') return undefined
  return { type, raw: found![0], text }
}

/** bare is a formula without its marks. */
const bare = (text: string) => (/^\$(?!\$)/.test(text) ? text.slice(1, -1) : text.slice(2, -2)).trim()

/** wrapped is a formula as it was written, in an element that says how it is to be set. */
const wrapped = (tag: string, text: string) =>
  `<${tag} class="${/^(?:\\\(|\$(?!\$))/.test(text) ? 'math' : 'math math-display'}">${escape(text)}</${tag}>`

export const formulas: TokenizerAndRendererExtension[] = [
  {
    name: 'formula-block',
    level: 'block',
    start: src => {
      const at = src.search(/\n {0,3}(?:\\\[|\$\$)/)
      return at < 0 ? undefined : at
    },
    tokenizer: src => (/^ {0,3}(?:\\\[|\$\$)/.test(src) ? tokenize('formula-block', block, src) : undefined),
    renderer: token => wrapped('div', token['text'] as string),
  },
  {
    name: 'formula',
    level: 'inline',
    start: src => {
      const at = src.search(/\\[([]|\$/)
      return at < 0 ? undefined : at
    },
    tokenizer: src => (/^(?:\\[([]|\$)/.test(src) ? tokenize('formula', /^\$(?!\$)/.test(src) ? dollars : inline, src) : undefined),
    renderer: token => wrapped('span', token['text'] as string),
  },
]
