// Formulas set by KaTeX. This module is loaded when a message has a formula.
//
// KaTeX builds elements and sets their styles one by one, so that the page's
// policy needs no exception. It loads nothing and runs nothing that a formula
// names (trust is off), and stops at a number of macro expansions.
import katex from 'katex'

/** set are formulas that were set lately, to be copied: while a message is streamed the same ones come again. */
const set = new Map<string, HTMLElement>()
const most = 300

/** typeset puts a formula in its shape into an element that holds it as it was written. What KaTeX can't read stays as it is. */
export function typeset(element: HTMLElement) {
  const written = element.textContent
  const marks = /^\$(?!\$)/.test(written) ? 1 : 2 // on each side, in characters
  const display = element.classList.contains('math-display')
  const key = `${display} ${written}`
  let shape = set.get(key)
  if (!shape) {
    shape = document.createElement('span')
    try {
      katex.render(written.slice(marks, -marks).trim(), shape, { displayMode: display, throwOnError: true, strict: 'ignore', maxSize: 20, maxExpand: 500 })
    } catch {
      shape.textContent = written
    }
    if (set.size >= most) set.delete(set.keys().next().value!)
    set.set(key, shape)
  }
  element.replaceChildren(...shape.cloneNode(true).childNodes)
  element.classList.add('math-set')
  if (display) element.tabIndex = 0 // it may scroll sideways
}
