// Texts of the messages that the map speaks of.
import { useEffect } from 'preact/hooks'
import { getMessage } from '../api/coppice'
import { conversation } from '../state/branch'
import * as messages from '../state/messages'

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
