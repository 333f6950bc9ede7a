// Blocks of Markdown as safe pieces of the page: what Markdown makes goes through
// the sanitizer, and the page's policy allows no script but its own.
import DOMPurify from 'dompurify'
import { type Block, marked, picture } from './blocks'

const purifier = DOMPurify()

const allowed = {
  ALLOWED_TAGS: ['p', 'br', 'hr', 'em', 'strong', 'del', 'code', 'pre', 'a', 'ul', 'ol', 'li', 'blockquote', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6',
    'table', 'thead', 'tbody', 'tr', 'th', 'td', 'img', 'input', 'span', 'div', 'sup'],
  ALLOWED_ATTR: ['href', 'title', 'src', 'alt', 'align', 'start', 'class', 'type', 'checked', 'disabled', 'data-language'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto|tel):/i,
  ADD_URI_SAFE_ATTR: ['align', 'start', 'type', 'checked', 'disabled', 'data-language'], // which are no addresses
  RETURN_DOM_FRAGMENT: true as const,
}

purifier.addHook('afterSanitizeAttributes', node => {
  const kept = Array.from(node.classList).filter(name => name === 'table' || name === 'plain' || name === 'math' || name === 'math-display' || name.startsWith('hljs-') || name.endsWith('_'))
  if (kept.length) node.className = kept.join(' ')
  else node.removeAttribute('class')
  if (/^H[1-6]$/.test(node.tagName)) node.setAttribute('aria-level', String(Math.min(6, Number(node.tagName[1]) + 2))) // below the message's own
  if (node.tagName === 'A' && node.hasAttribute('href')) {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
  if (node.tagName === 'INPUT') { // a task list's box, which is no control
    node.setAttribute('type', 'checkbox')
    node.setAttribute('disabled', '')
    node.setAttribute('aria-label', node.hasAttribute('checked') ? 'done' : 'to do')
  }
  if (node.tagName === 'IMG' && !picture.test(node.getAttribute('src') ?? '')) node.removeAttribute('src')
})

/** purify makes a piece of the page of HTML. */
export const purify = (html: string): DocumentFragment => purifier.sanitize(html, allowed)

/** render makes a block's piece of the page. */
export const render = (block: Block): DocumentFragment => purify(marked.parser(block.tokens))
