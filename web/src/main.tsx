import './style/page.css'
import { effect } from '@preact/signals'
import { render } from 'preact'
import { followKey } from './api/http'
import * as answers from './state/answers'
import * as branch from './state/branch'
import * as connection from './state/connection'
import * as context from './state/context'
import * as conversations from './state/conversations'
import { deleted } from './state/actions'
import * as deletions from './state/deletions'
import * as drafts from './state/drafts'
import * as live from './state/live'
import * as look from './state/look'
import * as models from './state/models'
import * as place from './state/place'
import * as prunes from './state/prunes'
import * as removals from './state/removals'
import { pickUp } from './state/replies'
import * as settings from './state/settings'
import * as search from './state/search'
import * as sideSize from './state/sideSize'
import * as tabs from './state/tabs'
import * as welcome from './state/welcome'
import { App } from './ui/App'
import { listenForKeys } from './ui/keys'
import { loadLater } from './ui/lazy'

const [, first, token, more] = location.pathname.split('/')
if (first === 'shared' && token && more === undefined) {
  look.start()
  void import('./ui/Shared').then(({ Shared }) => render(<Shared token={token} />, document.getElementById('app')!))
} else {
  start()
}

function start() {
  followKey()
  // Modules of state do nothing by themselves when they are imported.
  for (const part of [look, sideSize, place, tabs, connection, models, settings, conversations, branch, context, search, drafts, welcome, live, prunes, removals, answers]) part.start()
  deletions.start(deleted)
  listenForKeys()
  effect(() => {
    const title = branch.conversation.value?.title
    document.title = title ? `${title} · Coppice` : 'Coppice'
  })
  pickUp()
  render(<App />, document.getElementById('app')!)
  loadLater()
}
