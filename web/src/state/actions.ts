// What a person does with conversations and messages. Each action talks to the
// server and then brings the page along.
import { siblings } from './forest'
import { batch, signal } from '@preact/signals'
import { uuidv7 } from '@coppice-chat/client'
import * as api from '../api/coppice'
import type { Content, Conversation, ConversationUpdate, Grafted, Message, Part } from '../api/types'
import * as branch from './branch'
import * as list from './conversations'
import * as deletions from './deletions'
import { nameOf } from '../text/format'
import { drawer, narrow, showPanel } from './look'
import { dismiss, failed, note } from './notices'
import { go, place } from './place'
import * as replies from './replies'
import * as settings from './settings'
import { full } from './sideSize'
import { tell } from './tabs'
import * as tree from './tree'

/** editing is the message whose text is being edited in place. */
export const editing = signal<string | null>(null)

export function openConversation(id: string | null) {
  drawer.value = false
  editing.value = null
  go({ conversation: id, head: null })
}

/** openHit goes to a message that was found: to its branch, and there to it. */
export function openHit(conversation: string, head: string, message: Message) {
  drawer.value = false
  const there = branch.conversation.peek()?.id === conversation
  if (there) return branch.goTo(message.id).catch(failed('The message could not be opened'))
  go({ conversation, head })
  branch.seek.value = { conversation, depth: message.depth, id: message.id }
}

/** send appends a message below the shown head and asks for an answer. */
export async function send(text: string, content: string | Part[] = text) {
  replies.begin(await next(content))
}

/** next is a message below the shown head, which is about to be answered. It opens a new conversation where none is open. */
export async function next(content: string | Part[]): Promise<Omit<api.Ask, 'id'> & Required<Pick<api.Ask, 'message'>>> {
  await branch.settled()
  const open = branch.path.peek()
  const head = branch.headOf(open)
  const message = { id: uuidv7(), role: 'user' as const, content }
  if (open && head !== null) return { conversation: open.conversation, head, message: { ...message, parent_id: head } }
  const id = open?.conversation ?? (await create())
  const prompt = await settings.prompted(id)
  return { conversation: id, head: prompt ?? 'active', message: { ...message, parent_id: prompt } }
}

/** create opens a new conversation and gives its id. */
async function create(): Promise<string> {
  const made = await settings.create(uuidv7()) // the server gives it a title
  replies.made.add(made.id)
  batch(() => {
    branch.conversation.value = made
    branch.path.value = { conversation: made.id, ids: [] }
    branch.problem.value = null
  })
  list.changed(made)
  go({ conversation: made.id, head: null })
  return made.id
}

/** beginTwo begins with two questions beside one another, and has each answered on its branch. The first is shown. */
export async function beginTwo(questions: readonly [string, string]) {
  const id = branch.path.peek()?.conversation ?? (await create())
  const prompt = await settings.prompted(id)
  const ask = async (content: string) => (await api.append(id, prompt, [{ role: 'user', content }])).data[0]!
  const first = await ask(questions[0])
  branch.grow(first)
  const other = await ask(questions[1])
  branch.know(other)
  for (const { id: head } of [other, first]) replies.begin({ conversation: id, head })
}

/** withText is a content with another text, and the attachments that it had. */
function withText(content: Content | undefined, text: string): string | Part[] {
  const rest = Array.isArray(content) ? content.filter(p => p.text === undefined && p.refusal === undefined) : []
  return rest.length === 0 ? text : [{ type: 'text', text }, ...rest]
}

/** edit puts another text beside a message, in a new branch, and asks for an answer. */
export function edit(message: Message, text: string) {
  editing.value = null
  branch.cut(message.depth)
  replies.begin({
    conversation: message.conversation_id, head: message.id,
    message: { id: uuidv7(), role: 'user', content: withText(message.content, text), parent_id: message.parent_id },
  })
}

/** regenerate asks for another answer beside this one, of a model of that name or else of the chosen one. */
export function regenerate(message: Message, model?: string) {
  if (message.parent_id === null) return
  branch.cut(message.depth)
  replies.begin({ conversation: message.conversation_id, head: message.parent_id, ...(model && { model }) })
}

/** goOn asks for an answer beside this one that begins with its text. */
export function goOn(message: Message) {
  if (message.parent_id === null) return
  branch.cut(message.depth)
  replies.begin({ conversation: message.conversation_id, head: message.id, continue: true })
}

/** graft brings to a branch what another one came to, and goes there. */
export async function graft(conversation: string, head: string, from: string, include: Grafted['include'], text: string) {
  const made = await api.graft(conversation, head, uuidv7(), from, include, text)
  tell({ conversation })
  branch.know(made)
  await branch.toNewest(made.id, 'show')
  note('Brought here.')
}

/** answer asks for an answer to the shown head. */
export function answer(message: Message) {
  replies.begin({ conversation: message.conversation_id, head: message.id })
}

/** sibling is the message so many places beside one, undefined where there is none. */
async function sibling(message: Message, by: number): Promise<string | undefined> {
  let forest = await tree.load(message.conversation_id)
  let knot = forest.byId.get(message.id)
  if (!knot || siblings(forest, knot).length !== message.siblings.count) {
    forest = await tree.reload(message.conversation_id)
    knot = forest.byId.get(message.id)
  }
  if (!knot) return undefined
  const row = siblings(forest, knot)
  return row[row.indexOf(knot) + by]?.id
}

/** wishFocus is where the switch between siblings gets the focus back, and the message that was left by it. */
export const wishFocus = signal<{ depth: number; left: string } | null>(null)

/** step switches to a sibling, where its branch was left off. */
export async function step(message: Message, by: number) {
  try {
    const signal = branch.setOff()
    const id = await sibling(message, by)
    if (id === undefined || signal.aborted) return
    wishFocus.value = { depth: message.depth, left: message.id }
    await branch.toNewest(id, 'keep', signal)
  } catch (error) {
    wishFocus.value = null
    failed('The branch could not be switched')(error)
  }
}

/** continueFrom shows the branch up to a message, so that the next one goes below it. */
export const continueFrom = (message: Message) => branch.cut(message.depth + 1)

/** forkFrom copies the branch up to a message into a conversation of its own, with all other versions if asked to. */
export async function forkFrom(message: Message, siblings: 'none' | 'all' = 'none') {
  try {
    const title = branch.conversation.peek()?.title ?? ''
    const made = await api.fork(message.conversation_id, message.id, uuidv7(), title && `${title} (fork)`, siblings)
    list.changed(made)
    tell({ conversation: null })
    go({ conversation: made.id, head: null })
    note('This is the fork: a conversation of its own.')
  } catch (error) {
    failed('The fork was not made')(error)
  }
}

/** showMessage goes to a message from a pane beside the branch, which makes room where it lies over it. */
export function showMessage(id: string): Promise<void> {
  if (narrow.peek()) showPanel('none')
  full.value = false
  return branch.goTo(id).catch(failed('The message could not be shown'))
}

export async function rename(id: string, title: string) {
  try {
    await update(id, { title })
  } catch (error) {
    failed('The title was not changed')(error)
  }
}

/** update changes a conversation, also where it is open. */
export async function update(id: string, change: ConversationUpdate) {
  const c = await list.update(id, change)
  if (branch.conversation.peek()?.id === id) branch.conversation.value = c
}

/** archive puts a conversation away, or brings it back. */
export async function archive(c: Conversation) {
  try {
    await update(c.id, { archived: !c.archived })
    note(c.archived ? 'Brought back from the archive.' : 'Archived.', {
      action: { label: 'Undo', run: () => void update(c.id, { archived: c.archived }).catch(failed('Not changed')) },
    })
  } catch (error) {
    failed('Not changed')(error)
  }
}

/** removeConversation deletes a conversation some seconds later, unless that is taken back. */
export function removeConversation(c: Conversation) {
  const open = place.peek()
  if (open.conversation === c.id) go({ conversation: null, head: null })
  const told = note(`“${nameOf(c)}” is deleted.`, {
    lasts: deletions.undoFor,
    action: {
      label: 'Undo',
      run: () => {
        deletions.takeBack(c.id)
        if (open.conversation === c.id) go(open)
      },
    },
  })
  deletions.begin(c.id, id => {
    dismiss(told)
    deleted(id)
  })
}

/** deleted brings the page along after a deletion. */
export function deleted(id: string) {
  list.gone(id)
  tell({ conversation: id })
}

/** copy puts text on the clipboard. */
export async function copy(text: string) {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text)
    else copyOldWay(text) // a page that came over plain HTTP has no clipboard
    note('Copied.')
  } catch (error) {
    failed('Not copied')(error)
  }
}

function copyOldWay(text: string) {
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'unseen'
  const focused = document.activeElement
  document.body.append(field)
  field.select()
  const done = document.execCommand('copy')
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  if (!done) throw new Error('the browser doesn’t allow it.')
}

