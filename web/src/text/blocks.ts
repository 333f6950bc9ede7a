// Markdown taken apart into blocks, so that while a message is streamed only its
// last block is made anew.
//
// HTML in a message is shown as it was written, and not obeyed: nothing that
// was said hides from the reader.
import { Lexer, Marked, type Token, type Tokens, type TokensList } from 'marked'
import { footnotes } from './footnotes'
import { formulas } from './formulas'

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** picture is an image that is in the message itself, and is nothing but pixels. */
export const picture = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i

const lineBreak = /^<br\s*\/?>$/i

/** marked reads Markdown and writes HTML, which markdown.ts sanitizes. Code gets its colours, and formulas their shape, in enrich.ts. */
export const marked = new Marked({
  gfm: true,
  extensions: [...formulas, ...footnotes],
  breaks: true, // what was written on a line of its own stays there
  renderer: {
    html: ({ text, block }) => {
      if (lineBreak.test(text.trim())) return '<br>'
      return block ? `<p class="plain">${escape(text.trimEnd())}</p>` : escape(text)
    },
    code: ({ text, lang }) => {
      const language = (lang ?? '').trim().split(/[\s,{]/, 1)[0]!.toLowerCase()
      return `<pre data-language="${escape(language)}"><code>${escape(text)}\n</code></pre>`
    },
    image: ({ href, text }) =>
      picture.test(href)
        ? `<img src="${escape(href)}" alt="${escape(text)}">`
        : `<a href="${escape(href)}">${escape(text || 'image')}</a>`,
    table(token) {
      const row = (cells: Tokens.TableCell[], tag: string) =>
        '<tr>' + cells.map(c => `<${tag}${c.align ? ` align="${c.align}"` : ''}>${this.parser.parseInline(c.tokens)}</${tag}>`).join('') + '</tr>'
      const body = token.rows.map(r => row(r, 'td')).join('')
      return `<div class="table"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>`
    },
  },
})

/** A Block is some paragraphs, lists, tables and so on. */
export interface Block {
  /** What it was made of; equal keys make equal pieces of the page. */
  key: string
  text: string
  tokens: Token[]
  /** Where the code begins in the text of a fence that still grows. Such a block keeps its key meanwhile. */
  body?: number
}

/** size is how much text a block has at least, in characters: many small ones would cost more. */
export const size = 1000

/**
 * longestLine is the most that a line may have, in characters, images in the
 * message aside: the time that some lines take grows with their square.
 */
export const longestLine = 20_000

/** lex reads Markdown, with the references' addresses that are known from before. */
export function lex(text: string, links: TokensList['links'] = {}): TokensList {
  const lexer = new Lexer(marked.defaults)
  Object.assign(lexer.tokens.links, links)
  return lexer.lex(text)
}

/** blocks takes Markdown apart. Text that is added at the end changes the last block only, and makes new ones. */
export const blocks = (text: string): Block[] => group(lex(text))

/** group puts tokens together into blocks. A long piece of code has a block of its own. */
export function group(tokens: TokensList): Block[] {
  // A reference's address stands elsewhere in the message.
  const links = Object.keys(tokens.links).length ? JSON.stringify(tokens.links) : ''
  const out: Block[] = []
  for (const token of tokens) {
    let last = out.at(-1)
    const alone = token.type === 'code' && token.raw.length >= size
    if (!last || alone || last.text.length >= size) out.push((last = { key: links, text: '', tokens: [] }))
    last.key += token.raw
    last.text += token.raw
    last.tokens.push(token)
  }
  return out
}

/**
 * fences takes a text apart into what is fenced as code and what isn't, which
 * is how the user's own messages are shown: as they were typed.
 */
export function fences(text: string): ({ text: string } | { block: Block })[] {
  const out: ({ text: string } | { block: Block })[] = []
  let plain = ''
  const flush = () => {
    const trimmed = plain.replace(/^\n+|\s+$/g, '')
    if (trimmed) out.push({ text: trimmed })
    plain = ''
  }
  for (const token of lex(text)) {
    if (token.type === 'code' && (token as Tokens.Code).codeBlockStyle !== 'indented') {
      flush()
      out.push({ block: { key: token.raw, text: token.raw, tokens: [token] } })
    } else plain += token.raw
  }
  flush()
  return out
}
