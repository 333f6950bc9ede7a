// The beginnings of messages, beside their dots where the map has room for words.
import { signal } from '@preact/signals'
import { getTree } from '../api/coppice'
import * as messages from '../state/messages'
import { said } from '../text/content'

/** room is the width from which there are words, in pixels. */
export const room = 480

/** most is how many letters of a message are read. */
const most = 80

/** read are those of one conversation, by message. */
export const read = signal<{ conversation: string; texts: Map<string, string> } | null>(null)

/** load reads them for a conversation, of all its messages at once. Without them, those are shown that the page has. */
export function load(conversation: string) {
  if (read.peek()?.conversation === conversation) return
  read.value = { conversation, texts: new Map() }
  getTree(conversation, undefined, most).then(tree => {
    if (read.peek()?.conversation === conversation) read.value = { conversation, texts: new Map(tree.data.map(n => [n.id, n.preview ?? ''])) }
  }, () => {})
}

/** wordsOf is the beginning of a message, in one line; empty where it isn't known. */
export function wordsOf(id: string): string {
  const known = read.value?.texts.get(id)
  if (known !== undefined) return known
  const message = messages.get(id)
  return message ? said(message).slice(0, most).replaceAll(/\s+/g, ' ') : ''
}
