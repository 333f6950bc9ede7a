// The keys that work everywhere on the page.
import { step } from '../state/actions'
import { headOf, path } from '../state/branch'
import { dialog } from '../state/dialog'
import { drawer, panel, showPanel, togglePanel, wide } from '../state/look'
import * as messages from '../state/messages'
import { failed } from '../state/notices'
import * as replies from '../state/replies'
import { full } from '../state/sideSize'
import { editLast } from './Composer'
import { focusSearch } from './Sidebar'

/** printBranch prints the branch that is shown, as far up as it goes. */
export function printBranch() {
  const p = path.peek()
  const head = headOf(p)
  if (p && head) dialog.value = { kind: 'print', conversation: p.conversation, head }
}

export function listenForKeys() {
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.isComposing) return
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      focusSearch()
    } else if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'p' && headOf(path.peek())) {
      event.preventDefault()
      printBranch()
    } else if (event.key === 'Escape') escape()
    else if (!event.metaKey && !event.ctrlKey && !event.altKey && !typing(event.target)) letter(event)
  })
}

/** typing tells whether a letter belongs to a text field. */
const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches('textarea, input:not([type=checkbox])'))

function letter(event: KeyboardEvent) {
  const act: Record<string, () => void> = {
    '/': () => focusSearch(path.peek() !== null),
    m: () => togglePanel('map'),
    c: () => togglePanel('context'),
    '?': () => void (dialog.value = { kind: 'help' }),
    '[': () => switchInView(-1),
    ']': () => switchInView(1),
    ArrowUp: () => {
      if (document.activeElement === document.body && editLast()) event.preventDefault()
    },
  }
  const run = act[event.key]
  if (!run || dialog.peek()) return
  run()
  if (event.key !== 'ArrowUp') event.preventDefault()
}

/** escape closes what lies on top, else stops the answer. */
function escape() {
  const p = path.peek()
  const live = p && replies.at(p.conversation, headOf(p))
  if (drawer.peek()) drawer.value = false
  else if (full.peek()) full.value = false
  else if (!wide.peek() && panel.peek() !== 'none') showPanel('none')
  else if (live?.running) void replies.stop(live).catch(failed('The answer goes on'))
}

/**
 * switchInView switches the message that has the focus, or else the last one
 * with siblings that is in view, or else the last one on the branch.
 */
function switchInView(by: number) {
  const articles = Array.from(document.querySelectorAll<HTMLElement>('.message[data-id]'))
  const pane = document.querySelector('.transcript')?.getBoundingClientRect()
  const inView = articles.filter(a => {
    const { top, bottom } = a.getBoundingClientRect()
    return pane && bottom > pane.top && top < pane.bottom
  })
  const focused = document.activeElement?.closest<HTMLElement>('.message[data-id]')
  const ids = [focused, ...inView.reverse(), ...articles.reverse()].map(a => a?.dataset['id'])
  for (const id of [...ids, ...(path.peek()?.ids.slice(-200).reverse() ?? [])]) {
    const m = id === undefined ? undefined : messages.get(id)
    if (m && m.siblings.count > 1) return void step(m, by)
  }
}
