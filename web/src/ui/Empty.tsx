// What stands in place of a branch where there is none.
import { missing, reason } from '../api/http'
import { openConversation } from '../state/actions'
import { gone } from '../state/connection'
import { filter, listed } from '../state/conversations'
import { importDemo, importing } from '../state/imports'
import { place } from '../state/place'
import { nameOf } from '../text/format'

/** Welcome says what this is, at the start of a new conversation. */
export function Welcome() {
  const first = listed.value?.length === 0 && !filter.value.archived && !filter.value.tag
  const demo = async () => {
    const id = await importDemo()
    if (id) openConversation(id)
  }
  return (
    <div class="welcome">
      <Sprig />
      <h2>A conversation is a tree.</h2>
      <p>
        Edit a message or ask for another answer, and a new branch grows beside the old one. Nothing is lost, and the map shows where you are.
        When a branch gets long, its older part is folded into a summary, and you see what the model sees.
      </p>
      {first && (
        <p class="welcome-actions">
          <button type="button" class="secondary" disabled={importing.value !== null} onClick={() => void demo()}>Try the demonstration</button>
          <span>or drop an export of ChatGPT, Claude, LibreChat or Open WebUI anywhere on this page.</span>
        </p>
      )}
    </div>
  )
}

/** Sprig is a small tree with one branch in leaf. */
function Sprig() {
  return (
    <svg class="sprig" viewBox="0 0 96 72" width="96" height="72" aria-hidden="true" fill="none" stroke-width="2" stroke-linecap="round">
      <path class="thin" d="M48 68V44C48 30 20 34 20 14M48 44c0-14 28-10 28-30" />
      <path class="strong" d="M48 68V44C48 30 48 30 48 8" />
      <circle class="thin dot" cx="20" cy="12" r="4" />
      <circle class="thin dot" cx="76" cy="12" r="4" />
      <circle class="strong dot" cx="48" cy="7" r="4" />
    </svg>
  )
}

export function Loading() {
  return (
    <div class="loading" aria-hidden="true">
      {[28, 64, 40].map(width => (
        <div class="message missing" key={width}>
          <span class="bone short" />
          <span class="bone" />
          <span class="bone" style={{ width: `${width}%` }} />
        </div>
      ))}
    </div>
  )
}

/** NotFound says why a conversation or a branch of it isn't shown. */
export function NotFound({ error }: { error: Error }) {
  const { conversation, head } = place.value
  return (
    <div class="welcome" role="alert">
      <h2>{head ? 'This branch can’t be shown.' : 'This conversation can’t be shown.'}</h2>
      <p>{missing(error) ? 'It was deleted, or the address is wrong.' : gone.value ? 'The server doesn’t answer. It comes as soon as the server does.' : reason(error)}</p>
      <p class="welcome-actions">
        {head && <button type="button" class="secondary" onClick={() => openConversation(conversation)}>Open the conversation where it was left off</button>}
        <StartAnew />
      </p>
      <Ways />
    </div>
  )
}

/** Lost is for an address at which nothing ever was. */
export function Lost() {
  return (
    <div class="welcome" role="alert">
      <h2>There is nothing at this address.</h2>
      <p>It is cut off, or has a letter too many. The address of a conversation begins with {location.origin}/c/.</p>
      <p class="welcome-actions"><StartAnew /></p>
      <Ways />
    </div>
  )
}

const StartAnew = () => <button type="button" class="secondary" onClick={() => openConversation(null)}>Start a new conversation</button>

/** Ways lead on to other conversations. */
function Ways() {
  const others = (listed.value ?? []).filter(c => c.id !== place.value.conversation).slice(0, 3)
  if (others.length === 0) return null
  return (
    <>
      <p>Or go on with one of these:</p>
      <ul class="ways">
        {others.map(c => <li key={c.id}><button type="button" class="plain-button" dir="auto" onClick={() => openConversation(c.id)}>{nameOf(c)}</button></li>)}
      </ul>
    </>
  )
}
