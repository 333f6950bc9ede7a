// Quiet lines above the composer about the state of things.
import { computed } from '@preact/signals'
import { head, path, toNewest } from '../state/branch'
import { gone } from '../state/connection'
import * as messages from '../state/messages'
import { accept, models, offers } from '../state/models'
import { failed } from '../state/notices'
import { at } from '../state/replies'
import { forest } from '../state/tree'
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

/** goesOn is whether the head has messages below it. */
const goesOn = computed(() => {
  const id = head.value
  return id !== null && (forest.value?.byId.get(id)?.children.length ?? 0) > 0
})

export function Banners() {
  if (gone.value) {
    return <p class="banner bad" role="status">The server doesn’t answer. What you typed is kept, and the page tries again by itself.</p>
  }
  if (goesOn.value && path.value && !at(path.value.conversation, head.value)) {
    return (
      <p class="banner" role="status">
        The branch goes on below. What you write here starts another one.{' '}
        <button type="button" class="plain-button" onClick={() => void toNewest(head.peek()!, 'keep').catch(failed('The branch could not be shown'))}>Show the rest</button>
      </p>
    )
  }
  const offer = offers.value[0]
  if (offer) {
    return (
      <p class="banner" role="status">
        {offer.name} answers on this machine, with {offer.models.slice(0, 3).join(', ')}{offer.models.length > 3 ? ` and ${offer.models.length - 3} more` : ''}.{' '}
        <button type="button" class="plain-button" onClick={() => void accept(offer)}>Use it</button>
      </p>
    )
  }
  if (offline.value && models.value.every(m => m.name === 'offline')) {
    return (
      <p class="banner" role="status">
        This is the offline model: it understands nothing and repeats what it is given. Start the server with <code>--openai-base-url</code> or <code>--reply-model</code> to have answers.
      </p>
    )
  }
  return null
}
