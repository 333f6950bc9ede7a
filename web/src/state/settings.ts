// What is particular to a conversation: its system prompt, the model that answers,
// and its settings of contexts and compactions; also of one that is yet to begin.
import type { Schemas } from '@coppice-chat/client'
import { computed, effect, signal, untracked } from '@preact/signals'
import * as api from '../api/coppice'
import { keyWanted } from '../api/http'
import type { Conversation, Message, Preset, Settings } from '../api/types'
import { said } from '../text/content'
import * as branch from './branch'
import { returns } from './connection'
import * as list from './conversations'
import { pathTo } from './forest'
import { tell } from './tabs'
import * as tree from './tree'
import { inTurn } from './turns'

/** Wishes are of the replies in a conversation. They stand in its metadata, under "reply". */
export interface Wishes {
  model?: string
  temperature?: number
}

/** A Beginning is what a new conversation begins with. */
export interface Beginning {
  system: string
  wishes: Wishes
  settings: Settings
  /** The preset that it was taken from, '' for none. */
  preset: string
}

const nothing: Beginning = { system: '', wishes: {}, settings: {}, preset: '' }

/** beginning is that of the next new conversation. */
export const beginning = signal<Beginning>(nothing)

const served = signal<Preset[]>([])

const stored = 'coppice.presets'

/** ownPresets are those that this browser keeps. */
export const ownPresets = signal<Preset[]>(JSON.parse(localStorage.getItem(stored) ?? '[]') as Preset[])

/** presets are this browser's, and the server's that have other names. */
export const presets = computed(() => [...ownPresets.value, ...served.value.filter(p => !ownPresets.value.some(own => own.name === p.name))])

/** savePreset keeps a preset in place of one of its name; one without more than a name goes. */
export function savePreset(p: Preset) {
  ownPresets.value = [...ownPresets.peek().filter(own => own.name !== p.name), ...(Object.keys(p).length > 1 ? [p] : [])]
  localStorage.setItem(stored, JSON.stringify(ownPresets.peek()))
}

/** choosePreset has the next conversation begin with a preset, or with nothing. */
export function choosePreset(name: string) {
  const p = presets.peek().find(other => other.name === name)
  beginning.value = p
    ? { preset: name, system: p.system ?? '', settings: p.settings ?? {}, wishes: { ...(p.model && { model: p.model }), ...(p.temperature !== undefined && { temperature: p.temperature }) } }
    : nothing
}

const wishesOf = (c: Conversation): Wishes => {
  const found = c.metadata['reply']
  const { model, temperature } = (typeof found === 'object' && found !== null ? found : {}) as Record<string, unknown>
  return { ...(typeof model === 'string' && { model }), ...(typeof temperature === 'number' && { temperature }) }
}

/** wishes are those of the open conversation, or of the next new one. */
export const wishes = computed(() => (branch.conversation.value ? wishesOf(branch.conversation.value) : beginning.value.wishes))

/** beginAgain has the next conversation begin as one did that holds nothing. */
export function beginAgain(c: Conversation) {
  beginning.value = { ...nothing, wishes: wishesOf(c), settings: c.settings }
}

/** settings are the own settings of the open conversation, or of the next new one. */
export const settings = (): Settings => (branch.conversation.peek()?.settings as Settings | undefined) ?? beginning.peek().settings

const withWishes = (metadata: Conversation['metadata'], w: Wishes) => {
  const others = without(metadata, 'reply')
  return Object.keys(w).length ? { ...others, reply: w } : others
}

/** without is an object without some of its members. */
export const without = (o: object, ...names: string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(o).filter(([name]) => !names.includes(name)))

/** change gives the open conversation, or the next new one, other wishes and settings. */
export async function change(w: Wishes, settings: Settings) {
  const c = branch.conversation.peek()
  if (!c) beginning.value = { ...beginning.peek(), wishes: w, settings, preset: '' }
  else branch.conversation.value = await list.update(c.id, { metadata: withWishes(c.metadata, w), settings })
}

/** create makes a conversation as it is to begin. Its system prompt is the first message. */
export async function create(id: string): Promise<Conversation> {
  const { wishes: w, settings } = beginning.peek()
  return api.createConversation(id, { metadata: withWishes({}, w), settings })
}

/** prompted appends the system prompt to a conversation without messages, and gives its id; null where there is none. */
export async function prompted(conversation: string): Promise<string | null> {
  const { system } = beginning.peek()
  if (!system.trim()) {
    beginning.value = nothing
    return null
  }
  const { data } = await api.append(conversation, null, [{ role: 'system', content: system }])
  branch.grow(...data)
  beginning.value = nothing
  return data[0]!.id
}

/** promptOf is the open branch's first message, if that is a system prompt; null where there is none. */
export async function promptOf(c: Conversation, head: string): Promise<Message | null> {
  const knot = await place(c, head)
  const first = await api.getMessage(c.id, pathTo(knot)[0]!)
  return first.role === 'system' || first.role === 'developer' ? first : null
}

const place = async (c: Conversation, head: string) =>
  (await tree.load(c.id)).byId.get(head) ?? (await tree.reload(c.id)).byId.get(head)!

/** most is how many messages of a branch are copied below another prompt. */
export const most = 5000

/** atOnce and bytesAtOnce bound one request that copies messages. */
const atOnce = 500
const bytesAtOnce = 400_000

/** prompt begins a branch with another system prompt, and copies the messages of the shown one below it if asked to. */
export async function prompt(c: Conversation, head: string, before: Message | null, text: string, copies: boolean) {
  const role = before?.role ?? 'system'
  const messages: Schemas['ChainMessage'][] = text.trim() ? [{ role, content: text }] : []
  if (copies) messages.push(...(await branchBelow(c, head, before)).map(copyOf))
  let parent: string | null = null
  while (messages.length > 0) {
    let n = 1
    for (let size = JSON.stringify(messages[0]).length; n < Math.min(messages.length, atOnce); n++) {
      size += JSON.stringify(messages[n]).length
      if (size > bytesAtOnce) break
    }
    const { data }: { data: Message[] } = await api.append(c.id, parent, messages.splice(0, n))
    parent = data.at(-1)!.id
  }
  if (parent === null) return
  tell({ conversation: c.id })
  await tree.reload(c.id)
  await branch.toNewest(parent, 'keep')
}

/** branchBelow reads a branch from its first message after the prompt to its head. */
async function branchBelow(c: Conversation, head: string, before: Message | null): Promise<Message[]> {
  const all: Message[] = []
  for (let end: string | null = head; end !== null; ) {
    const page: Message[] = (await api.transcript(c.id, end, 500)).data
    all.unshift(...page)
    end = page[0]?.parent_id ?? null
  }
  return all.filter(m => m.id !== before?.id)
}

/** copyOf is a message without what its place gives it. */
const copyOf = (m: Message): Schemas['ChainMessage'] =>
  without(m, 'id', 'conversation_id', 'parent_id', 'tokens', 'depth', 'siblings', 'created_at') as Schemas['ChainMessage']

/** rewrite puts another text beside an assistant's message, and asks nobody for an answer. */
export async function rewrite(m: Message, text: string) {
  if (text === said(m)) return
  const { data } = await api.append(m.conversation_id, m.parent_id, [{ role: m.role, content: text, ...(m.name && { name: m.name }) }])
  branch.know(...data)
  tell({ conversation: m.conversation_id })
  await branch.toNewest(data[0]!.id, 'keep')
}

/** pin pins a message, or takes its pin away. */
export async function pin(m: Pick<Message, 'conversation_id' | 'id'>, pinned: boolean) {
  branch.changed(await api.pin(m.conversation_id, m.id, pinned))
  tell({ conversation: m.conversation_id })
}

/** rate rates a message, or labels it. */
export async function rate(m: Message, change: Parameters<typeof api.annotate>[2]) {
  branch.changed(await api.annotate(m.conversation_id, m.id, change))
  void tree.reload(m.conversation_id)
  tell({ conversation: m.conversation_id })
}

const readPresets = inTurn(() => api.listPresets().then(page => void (served.value = page.data), () => {}))

/** start reads the presets. */
export function start() {
  effect(() => {
    void returns.value
    if (!keyWanted.value) untracked(() => void readPresets())
  })
}
