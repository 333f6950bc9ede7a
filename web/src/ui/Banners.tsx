// Quiet lines above the composer about the state of things.
import { computed } from '@preact/signals'
import { path } from '../state/branch'
import { gone } from '../state/connection'
import * as messages from '../state/messages'
import { modelOf } from '../text/mark'

/** offline is whether the last answer near the head came from the offline model. */
const offline = computed(() => {
  void messages.revision.value
  for (const id of path.value?.ids.slice(-4).reverse() ?? []) {
    const m = id === undefined ? undefined : messages.get(id)
    if (m?.role === 'assistant') return modelOf(m) === 'offline'
  }
  return false
})

export function Banners() {
  if (gone.value) {
    return <p class="banner bad" role="status">The server doesn’t answer. What you typed is kept, and the page tries again by itself.</p>
  }
  if (offline.value) {
    return (
      <p class="banner" role="status">
        This is the offline model: it understands nothing and repeats what it is given. Start the server with <code>OPENAI_API_KEY</code> to have answers.
      </p>
    )
  }
  return null
}
