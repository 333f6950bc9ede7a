// A reply on its way, and the message that it was sent with.
import { Problem, reason } from '../api/http'
import { gone } from '../state/connection'
import { failed } from '../state/notices'
import { Attachments } from '../attachments/Attachments'
import * as replies from '../state/replies'
import { roleName, textOf } from '../text/content'
import { Markdown, Typed } from './Markdown'
import { Reasoning } from './Reasoning'
import { besides, LiveSwitch } from './SiblingSwitch'
import { ToolCalls } from './Tools'

export function LiveRow({ live }: { live: replies.Live }) {
  const state = live.state.value
  return (
    <>
      {live.sent ? <Sent live={live} /> : <Answer live={live} />}
      {state === 'failed' && live.sent && <Failed live={live} what="The message was not sent" />}
    </>
  )
}

function Sent({ live }: { live: replies.Live }) {
  const others = besides(live)
  return (
    <article class="message user pending" aria-label="Your message, being sent">
      <header><h2 class="unseen">{roleName('user')}</h2><LiveSwitch others={others} /><span class="seen">{sending[live.state.value] ?? 'sending'}</span></header>
      <div class="body"><Typed text={textOf(live.sent!.content)} /><Attachments content={live.sent!.content} /></div>
    </article>
  )
}

const sending: Partial<Record<replies.State, string>> = { failed: 'not sent', reconnecting: 'waiting for the server' }

const words: Record<replies.State, string> = {
  sending: 'Asking the model',
  waiting: 'The model is reading',
  thinking: '',
  streaming: '',
  reconnecting: 'The connection broke. Picking the answer up again',
  stopping: 'Stopping',
  failed: '',
}

function Answer({ live }: { live: replies.Live }) {
  const state = live.state.value
  const text = live.text.value
  const reasoning = live.reasoning.value
  const took = live.thought.value
  const others = besides(live)
  return (
    <article class={`message assistant live ${state} ${others.length > 0 ? '' : 'bare'}`} aria-label="Assistant, answering" aria-busy={live.running}>
      <header><h2 class="unseen">{roleName('assistant')}</h2><LiveSwitch others={others} /></header>
      <div class="body">
        {reasoning && <Reasoning id={live.ask.id} text={reasoning} running={live.running && took === null} took={took} />}
        {text && <Markdown text={text} growing />}
        <ToolCalls calls={live.calls.value} />
        {words[state] && <p class="doing"><span class="caret" />{gone.value && state === 'reconnecting' ? 'The server doesn’t answer. Waiting for it' : words[state]}…</p>}
      </div>
      {state === 'failed' && <Failed live={live} what={text ? 'The answer broke off' : 'There is no answer'} />}
      {live.running && (
        <footer>
          <div class="actions always">
            <button type="button" class="quiet" disabled={state === 'stopping'} onClick={() => void replies.stop(live).catch(failed('The answer goes on'))}>stop</button>
          </div>
        </footer>
      )}
    </article>
  )
}

/** hopeless tells that the server will refuse the same message again. */
const hopeless = ({ sent, problem: { value: why } }: replies.Live) => sent && why instanceof Problem && (why.status === 413 || why.status === 422 || why.status === 400)

function Failed({ live, what }: { live: replies.Live; what: string }) {
  return (
    <p class="ending failed" role="alert">
      <span>{what}. {live.problem.value && reason(live.problem.value)}{live.text.value ? ' What came until then is kept above.' : ''}</span>
      {!hopeless(live) && <button type="button" class="plain-button" onClick={() => replies.again(live)}>Try again</button>}
      <button type="button" class="plain-button" onClick={() => replies.discard(live)}>{live.sent ? 'Back to the message' : 'Dismiss'}</button>
    </p>
  )
}
