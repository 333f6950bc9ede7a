// The page: conversations, branch, and the pane beside it.
import { computed } from '@preact/signals'
import { conversation, path, problem } from '../state/branch'
import { drawer, list, narrow, panel, showPanel, wide } from '../state/look'
import { place } from '../state/place'
import * as replies from '../state/replies'
import { full } from '../state/sideSize'
import { Banners } from './Banners'
import { Composer } from './Composer'
import { ContextPanel } from './ContextPanel'
import { Dialogs } from './Dialogs'
import { DropTarget } from './DropTarget'
import { Loading, Lost, NotFound, Welcome } from './Empty'
import { Header } from './Header'
import { Icon } from './icons'
import { MapPanel } from '../map/MapPanel'
import { Notices } from './Notices'
import { Sidebar } from './Sidebar'
import { FullButton, SideEdge } from './SideSize'
import { Starters } from './Starters'
import { Transcript } from './Transcript'

export function App() {
  const side = panel.value !== 'none' && conversation.value !== null
  return (
    <div class={`app ${side ? 'with-side' : ''} ${list.value === 'hidden' ? 'without-list' : ''}`}>
      <a class="skip" href="#branch" onClick={skip}>To the conversation</a>
      <Sidebar />
      {narrow.value && drawer.value && <div class="veil" onClick={() => (drawer.value = false)} />}
      <main class={`branch ${begins.value ? 'begins' : ''}`} id="branch" tabIndex={-1} aria-label="Conversation">
        <Header />
        <Branch />
        <div class="composer-frame">
          <Banners />
          <Composer />
        </div>
        {begins.value && <Starters />}
        <Announcer />
      </main>
      {side && !wide.value && <div class="veil" onClick={() => showPanel('none')} />}
      {side && <Side />}
      <Notices />
      <Dialogs />
      <DropTarget />
    </div>
  )
}

/** begins tells whether there is no message yet: the composer then stands in the middle. */
const begins = computed(() => {
  const p = path.value
  if (problem.value) return false
  return p ? p.ids.length === 0 && !replies.at(p.conversation, null) : place.value.conversation === null && !place.value.lost
})

/** skip takes the focus past the list of conversations. */
function skip(event: Event) {
  event.preventDefault()
  ;(document.querySelector<HTMLElement>('.transcript') ?? document.getElementById('branch'))?.focus()
}

function Branch() {
  const p = path.value
  if (problem.value) return <div class="transcript-frame"><NotFound error={problem.value} /></div>
  if (begins.value) return <div class="transcript-frame"><Welcome /></div>
  if (!p) return <div class="transcript-frame">{place.value.lost ? <Lost /> : <Loading />}</div>
  return <Transcript key={p.conversation} />
}

function Side() {
  const close = () => {
    full.value = false
    showPanel('none')
  }
  const tab = (which: 'map' | 'context', label: string) => (
    <button
      type="button" role="tab" id={`tab-${which}`} aria-controls="side-panel" aria-selected={panel.value === which}
      tabIndex={panel.value === which ? 0 : -1} onClick={() => showPanel(which)}
    >
      {label}
    </button>
  )
  return (
    <aside class={`side ${full.value ? 'full' : ''}`} aria-label={panel.value === 'map' ? 'Map' : 'Context'}>
      <SideEdge />
      <div class="side-head">
        <div
          class="tabs" role="tablist" aria-label="Beside the branch"
          onKeyDown={event => {
            if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return
            showPanel(panel.value === 'map' ? 'context' : 'map')
            document.getElementById(`tab-${panel.value}`)?.focus()
          }}
        >
          {tab('map', 'Map')}
          {tab('context', 'Context')}
        </div>
        <span class="spring" />
        <FullButton />
        <button type="button" class="tool-button" aria-label="Close" title="Close" onClick={close}><Icon name="close" /></button>
      </div>
      <div class="side-body" role="tabpanel" id="side-panel" aria-labelledby={`tab-${panel.value}`}>
        {panel.value === 'map' ? <MapPanel /> : <ContextPanel />}
      </div>
    </aside>
  )
}

/** Announcer tells screen readers when an answer begins and when it is there. */
function Announcer() {
  const p = path.value
  const live = p && replies.at(p.conversation, p.ids.at(-1) ?? null)
  return <p class="unseen" role="status">{live ? (live.running ? 'The assistant is answering.' : 'The answer failed.') : ''}</p>
}
