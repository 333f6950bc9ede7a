// Texts of the messages that the map speaks of.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { getMessage, getTree } from '../api/coppice'
import { conversation } from '../state/branch'
import * as messages from '../state/messages'
import { calls, said } from '../text/content'

/** rest is how long the reader rests on a message before texts are read, in milliseconds. */
const rest = 80

/** useTexts reads those messages that the page doesn't have, and has the component drawn again when they come. */
export function useTexts(ids: readonly string[]) {
  void messages.revision.value
  useEffect(() => {
    const c = conversation.peek()
    const missing = ids.filter(id => !messages.has(id))
    if (missing.length === 0 || !c) return
    const abort = new AbortController()
    const timer = setTimeout(() => {
      for (const id of missing) getMessage(c.id, id, abort.signal).then(m => messages.put([m]), () => {})
    }, rest)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [ids.join()])
}

/** most is how many letters tell how a message begins. */
const most = 80

/** gist is how a message begins, '' where its text isn't there. */
export function gist(id: string): string {
  const m = messages.get(id)
  return m ? (said(m) || calls(m)).slice(0, 200).replaceAll(/\s+/g, ' ').trim().slice(0, most) : ''
}

/** room is the width from which words stand beside the dots, in pixels. */
export const room = 480

/** previews are the beginnings of all messages of a conversation, where a map has had room for them. */
export const previews = signal<{ conversation: string; texts: Map<string, string> } | null>(null)

/** loadPreviews reads them at once. Until then, and of messages that came since, those are known that the page has. */
export function loadPreviews(conversation: string) {
  if (previews.peek()?.conversation === conversation) return
  previews.value = { conversation, texts: new Map() }
  getTree(conversation, undefined, most).then(tree => {
    if (previews.peek()?.conversation === conversation) previews.value = { conversation, texts: new Map(tree.data.map(n => [n.id, n.label ?? n.preview ?? ''])) }
  }, () => {})
}

/** wordsOf is what stands beside a message's dot. */
export const wordsOf = (id: string): string => messages.get(id)?.label ?? previews.value?.texts.get(id) ?? gist(id)
