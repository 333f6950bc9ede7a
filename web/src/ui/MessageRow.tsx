// One message of the transcript: who, what, and what can be done with it.
import type { Grafted, Message } from '../api/types'
import { Attachments } from '../attachments/Attachments'
import * as actions from '../state/actions'
import * as branch from '../state/branch'
import { dialog } from '../state/dialog'
import { below } from '../state/forest'
import { models } from '../state/models'
import { failed } from '../state/notices'
import { begin } from '../state/prunes'
import * as removals from '../state/removals'
import { pin, rate } from '../state/settings'
import * as tree from '../state/tree'
import { roleName, said } from '../text/content'
import { count, number, when, whenFully } from '../text/format'
import { endingOf, modelOf, thoughtFor } from '../text/mark'
import { Editor } from './Editor'
import { Icon } from './icons'
import { Markdown, Typed } from './Markdown'
import { Menu, type Item } from './Menu'
import { Reasoning } from './Reasoning'
import { SiblingSwitch } from './SiblingSwitch'
import { ToolCalls, ToolResult } from './Tools'

export interface RowState {
  /** The model reads a summary in place of this message. */
  folded: boolean
  /** Folded, but kept word for word. */
  kept: boolean
  /** There is no room for it in the context. */
  omitted: boolean
  /** It came with the last switch of branches. */
  fresh: boolean
  /** The reader was sent here. */
  sought: boolean
  /** A reply to it can't be asked for, because one is on its way. */
  busy: boolean
  last: boolean
}

export function MessageRow({ message, state, total }: { message: Message; state: RowState; total: number }) {
  const name = message.grafted ? 'From another branch' : message.name ? `${roleName(message.role)} (${message.name})` : roleName(message.role)
  const model = modelOf(message)
  const seen = state.kept ? 'kept word for word' : state.folded ? 'folded' : state.omitted ? 'not seen by the model' : ''
  // The line beside the branch tells questions from answers.
  const { grafted } = message
  const plain = !message.name && !grafted && (message.role === 'user' || message.role === 'assistant')
  const bare = plain && !model && !message.pinned && !message.label && !seen && message.siblings.count < 2
  const classes = ['message', message.role, bare && 'bare', state.folded && !state.kept && 'folded', state.omitted && 'folded', state.fresh && 'fresh', state.sought && 'sought', state.last && 'last', state.last && !state.busy && 'ready']
  return (
    <article
      class={classes.filter(Boolean).join(' ')} data-id={message.id} tabIndex={-1}
      aria-label={`${name}, message ${message.depth + 1} of ${total}${seen && ', ' + seen}`}
      aria-posinset={message.depth + 1} aria-setsize={total}
    >
      <header>
        <h2 class={plain ? 'unseen' : ''} dir="auto">{name}</h2>
        {grafted && <Origin grafted={grafted} />}
        <SiblingSwitch message={message} />
        {model && <span class="by" dir="auto" title="The model that wrote this">{model}</span>}
        {message.pinned && <span class="seen pinned" title="Pinned: it stays word for word when the branch is compacted.">pinned</span>}
        {message.label && <span class="seen" dir="auto" title={message.note ?? 'Label'}>{message.label}</span>}
        {seen && <span class="seen" title={seenTitle(state)}>{seen}</span>}
      </header>
      {removals.waiting.value.has(message.id) ? <p class="ending">Deleted. What follows stays.</p> : (
        <>
          {actions.editing.value === message.id ? <Editor message={message} /> : <Body message={message} />}
          <Ending message={message} busy={state.busy} />
          {actions.editing.value !== message.id && <Actions message={message} state={state} />}
        </>
      )}
    </article>
  )
}

/** Origin leads to the branch that a message was brought from. */
function Origin({ grafted }: { grafted: Grafted }) {
  const what = `${count(grafted.messages, 'message')}${grafted.include === 'summary' ? ', summarized' : ''}`
  if (grafted.source_gone) return <span class="seen" title="The branch that this comes from was deleted.">{what}, deleted since</span>
  return (
    <button type="button" class="quiet by" title="Show the branch that this comes from" onClick={() => void actions.showMessage(grafted.from_head_id)}>
      {what}
    </button>
  )
}

function seenTitle(state: RowState): string {
  if (state.kept) return 'A summary replaces this message, but its text stays in the context all the same.'
  return state.folded ? 'The model reads a summary in place of this message.' : 'There is no room for this message in the model’s window.'
}

function Body({ message }: { message: Message }) {
  if (message.role === 'tool') return <ToolResult message={message} />
  const text = said(message)
  const reasoning = message.reasoning || message.reasoning_content
  return (
    <div class="body">
      {reasoning && <Reasoning id={message.id} text={reasoning} took={thoughtFor(message)} />}
      {text && (message.role === 'assistant' || message.grafted ? <Markdown text={text} /> : <Typed text={text} />)}
      <Attachments content={message.content} />
      <ToolCalls calls={message.tool_calls ?? []} />
    </div>
  )
}

function Ending({ message, busy }: { message: Message; busy: boolean }) {
  const ending = endingOf(message)
  if (!ending) return null
  return (
    <p class={`ending ${ending.kind}`}>
      <span>
        {ending.kind === 'cut' ? 'Cut at the token limit.' : ending.kind === 'stopped' && !ending.detail ? 'Stopped here.' : `The answer broke off here${ending.detail && `: ${ending.detail}`}.`} What came until then is kept.
      </span>
      {said(message) && !message.tool_calls?.length && (
        <button type="button" class="plain-button" disabled={busy} title="Another version, which begins with this text" onClick={() => actions.goOn(message)}>Continue</button>
      )}
      <button type="button" class="plain-button" disabled={busy} onClick={() => actions.regenerate(message)}>Try again</button>
    </p>
  )
}

function Actions({ message, state }: { message: Message; state: RowState }) {
  const text = said(message)
  const more: Item[] = [
    ...(message.siblings.count > 1 ? [{ label: 'Compare versions…', run: () => (dialog.value = { kind: 'compare', of: { what: 'versions', message } }) }] : []),
    { label: 'Fork with all versions', run: () => void actions.forkFrom(message, 'all') },
    { label: 'Label and note…', run: () => (dialog.value = { kind: 'label', message }) },
    { label: message.pinned ? 'Unpin' : 'Pin: keep it word for word', run: () => void pin(message, !message.pinned).catch(failed('Not changed')) },
    ...(state.last || state.busy || message.tool_calls?.length ? [] : [{ label: 'Delete this message', run: () => removals.begin(message), danger: true }]),
    { label: 'Delete from here…', run: () => void confirmPrune(message), danger: true },
  ]
  if (message.role === 'assistant' && !message.tool_calls?.length && !state.busy) {
    more.unshift({ label: 'Edit this answer', run: () => (actions.editing.value = message.id) })
  }
  if (!state.busy) more.unshift(bring(message, state))
  if (!state.last) more.unshift({ label: 'Continue from here', run: () => actions.continueFrom(message) })
  if (message.role === 'assistant' && message.parent_id !== null && !state.busy && models.value.length > 1) {
    more.unshift(...models.value.map(m => ({ label: `Regenerate with ${m.name}`, run: () => actions.regenerate(message, m.name) })))
  }
  if (message.role === 'assistant' && message.parent_id !== null && !state.busy) {
    more.unshift({ label: 'Several answers side by side…', run: () => (dialog.value = { kind: 'compare', of: { what: 'ask', message } }) })
  }
  return (
    <footer>
      <div class="actions">
        {message.role === 'user' && !message.grafted && (
          <button type="button" class="quiet" disabled={state.busy} onClick={() => (actions.editing.value = message.id)}>edit</button>
        )}
        {message.role === 'assistant' && message.parent_id !== null && (
          <button type="button" class="quiet" disabled={state.busy} onClick={() => actions.regenerate(message)}>regenerate</button>
        )}
        {state.last && (message.role === 'user' || message.role === 'tool') && !state.busy && (
          <button type="button" class="quiet" onClick={() => actions.answer(message)}>ask for an answer</button>
        )}
        {text && <button type="button" class="quiet" onClick={() => void actions.copy(text)}>copy</button>}
        {message.role === 'assistant' && (
          <>
            <Rate message={message} rating={1} label="Good answer" />
            <Rate message={message} rating={-1} label="Bad answer" />
          </>
        )}
        <button type="button" class="quiet" title="Copy the branch up to here into a new conversation" onClick={() => void actions.forkFrom(message)}>fork</button>
        <Menu label="More" items={more} class="quiet icon-only"><Icon name="more" /></Menu>
      </div>
      <span class="meta" title={whenFully(message.created_at)}>
        {number(message.tokens)} tokens · {when(message.created_at)}
      </span>
    </footer>
  )
}

/** bring takes what the shown branch came to elsewhere, or from its end to one of its messages. */
function bring(message: Message, state: RowState): Item {
  const from = branch.head.peek()!
  const graft = (to?: string) => (dialog.value = { kind: 'graft', conversation: message.conversation_id, from, ...(to && { to }) })
  return state.last ? { label: 'Bring to another branch…', run: () => graft() } : { label: 'Bring back to here…', run: () => graft(message.id) }
}

/** Rate rates a message, or takes the rating away. */
function Rate({ message, rating, label }: { message: Message; rating: 1 | -1; label: string }) {
  const on = message.rating === rating
  return (
    <button
      type="button" class="quiet icon-only rate" aria-label={label} title={label} aria-pressed={on}
      onClick={() => void rate(message, { rating: on ? null : rating }).catch(failed('Not changed'))}
    >
      <Icon name={rating > 0 ? 'good' : 'bad'} />
    </button>
  )
}

/** confirmPrune names what goes with a message before it is deleted. */
async function confirmPrune(message: Message) {
  const forest = await tree.load(message.conversation_id)
  const knot = forest.byId.get(message.id)
  const what = knot ? below(knot) : { messages: 1, leaves: 1, summaries: 0 }
  const after = what.messages - 1
  const lines = [
    after === 0 ? 'This message goes.' : `This message goes, and ${count(after, 'message')} below it${what.leaves > 1 ? `, on ${what.leaves} branches` : ''}.`,
    what.summaries > 0 ? `${count(what.summaries, 'summary that saw them goes', 'summaries that saw them go')} as well.` : '',
    'You can take it back for ten seconds.',
  ]
  dialog.value = {
    kind: 'confirm', title: 'Delete from here', text: lines.filter(Boolean).join(' '),
    action: `Delete ${count(what.messages, 'message')}`, run: () => begin(message, what.messages),
  }
}
