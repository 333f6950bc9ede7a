// Markdown as safe pieces of the page. A message is taken apart into blocks, so
// that while it is streamed only its last block is made anew.
//
// HTML in a message is shown as it was written, and not obeyed: nothing that
// was said hides from the reader. What Markdown itself makes goes through the
// sanitizer all the same, and the page's policy allows no script but its own.
import DOMPurify from 'dompurify'
import { Marked, type Token, type Tokens } from 'marked'
import { highlight } from './highlight'

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** picture is an image that is in the message itself, and is nothing but pixels. */
export const picture = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,/i

const lineBreak = /^<br\s*\/?>$/i

const marked = new Marked({
  gfm: true,
  breaks: true, // what was written on a line of its own stays there
  renderer: {
    html: ({ text, block }) => {
      if (lineBreak.test(text.trim())) return '<br>'
      return block ? `<p class="plain">${escape(text.trimEnd())}</p>` : escape(text)
    },
    code: ({ text, lang }) => {
      const language = lang?.trim().split(/[\s,{]/, 1)[0]!.toLowerCase() ?? ''
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

const purifier = DOMPurify()

const allowed = {
  ALLOWED_TAGS: ['p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'a', 'ul', 'ol', 'li', 'blockquote', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6',
    'table', 'thead', 'tbody', 'tr', 'th', 'td', 'img', 'input', 'span', 'div'],
  ALLOWED_ATTR: ['href', 'title', 'src', 'alt', 'align', 'start', 'class', 'type', 'checked', 'disabled', 'data-language'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto|tel):/i,
  ADD_URI_SAFE_ATTR: ['align', 'start', 'type', 'checked', 'disabled', 'data-language'], // which are no addresses
  RETURN_DOM_FRAGMENT: true as const,
}

purifier.addHook('afterSanitizeAttributes', node => {
  const kept = Array.from(node.classList).filter(name => name === 'table' || name === 'plain' || name.startsWith('hljs-') || name.endsWith('_'))
  if (kept.length) node.className = kept.join(' ')
  else node.removeAttribute('class')
  if (node.tagName === 'A' && node.hasAttribute('href')) {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.tagName === 'INPUT') { // a task list's box, which is no control
    node.setAttribute('type', 'checkbox')
    node.setAttribute('disabled', '')
  }
  if (node.tagName === 'IMG' && !picture.test(node.getAttribute('src') ?? '')) node.removeAttribute('src')
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

/** render makes a block's piece of the page. */
export const render = (block: Block): DocumentFragment => purifier.sanitize(marked.parser(block.tokens), allowed)

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
