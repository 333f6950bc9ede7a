// The models that can answer, and the one that the reader chose.
import { computed, effect, signal } from '@preact/signals'
import * as api from '../api/coppice'
import { keyWanted } from '../api/http'
import type { Model, ModelOffer } from '../api/types'
import { returns } from './connection'
import { failed } from './notices'
import { change, settings, wishes } from './settings'
import { store } from './stored'
import { inTurn } from './turns'

/** models are those that answer, the server's default first. */
export const models = signal<Model[]>([])

/** offers are programs on this machine that have models, where the server has none. */
export const offers = signal<ModelOffer[]>([])

const name = 'coppice.model'

/** wish is the name of the chosen model, which the server may no longer have. */
const wish = signal(localStorage.getItem(name) ?? '')

/** chosen is the model that answers next; undefined before the server told its models. */
export const chosen = computed<Model | undefined>(() => named(wishes.value.model) ?? named(wish.value) ?? models.value[0])

const named = (name: string | undefined) => models.value.find(m => m.name === name || m.aliases.includes(name ?? ''))

/** choose has a model answer from now on: in this conversation alone, where that has a model of its own. */
export function choose(model: string) {
  if (wishes.peek().model === undefined) wish.value = model
  else void change({ ...wishes.peek(), model }, settings()).catch(failed('The model was not changed'))
}

/** window is what contexts are read for: undefined leaves it to the server, which has but one model. */
export const window = computed(() => (models.value.length > 1 ? chosen.value?.max_context_tokens : undefined))

export function start() {
  store(name, wish)
  effect(() => {
    void returns.value
    if (!keyWanted.value) void refresh()
  })
}

/** refresh asks the server. Without an answer its default answers. */
const refresh = inTurn(() => api.listModels().then(show, () => {}))

/** accept has the models of an offer answer. */
export const accept = (offer: ModelOffer) => api.acceptModels(offer.base_url).then(show, failed(`${offer.name} was not taken`))

function show(page: Awaited<ReturnType<typeof api.listModels>>) {
  models.value = page.data.filter(m => m.replies)
  offers.value = page.offers ?? []
}
