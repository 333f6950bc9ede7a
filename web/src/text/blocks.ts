// Markdown taken apart into blocks, so that while a message is streamed only its
// last block is made anew.
//
// HTML in a message is shown as it was written, and not obeyed: nothing that
// was said hides from the reader.
import { Marked, type Token, type Tokens } from 'marked'
import { highlight } from './highlight'

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** picture is an image that is in the message itself, and is nothing but pixels. */
export const picture = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i

const lineBreak = /^<br\s*\/?>$/i

/** marked reads Markdown and writes HTML, which markdown.ts sanitizes. */
export const marked = new Marked({
  gfm: true,
  breaks: true, // what was written on a line of its own stays there
  renderer: {
    html: ({ text, block }) => {
      if (lineBreak.test(text.trim())) return '<br>'
      return block ? `<p class="plain">${escape(text.trimEnd())}</p>` : escape(text)
    },
    code: ({ text, lang }) => {
      const language = (lang ?? '').trim().split(/[\s,{]/, 1)[0]!.toLowerCase()
      return `<pre data-language="${escape(language)}"><code>${highlight(text, language) ?? escape(text)}\n</code></pre>`
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
}

/** size is how much text a block has at least, in characters: many small ones would cost more. */
const size = 1000

/** blocks takes Markdown apart. Text that is added at the end changes the last block only, and makes new ones. */
export function blocks(text: string): Block[] {
  const tokens = marked.lexer(text)
  // A reference's address stands elsewhere in the message.
  const links = Object.keys(tokens.links).length ? JSON.stringify(tokens.links) : ''
  const out: Block[] = []
  for (const token of tokens) {
    let last = out.at(-1)
    if (!last || last.text.length >= size) out.push((last = { key: links, text: '', tokens: [] }))
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
  for (const token of marked.lexer(text)) {
    if (token.type === 'code' && (token as Tokens.Code).codeBlockStyle !== 'indented') {
      flush()
      out.push({ block: { key: token.raw, text: token.raw, tokens: [token] } })
    } else plain += token.raw
  }
  flush()
  return out
}
