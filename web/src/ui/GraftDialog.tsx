// What a branch came to, brought to another one: the text is written, changed by the
// reader, and appended there.
import { useEffect, useState } from 'preact/hooks'
import * as api from '../api/coppice'
import { reason } from '../api/http'
import type { Grafted } from '../api/types'
import * as actions from '../state/actions'
import { dialog, type Graft } from '../state/dialog'
import type { Forest } from '../state/forest'
import { failed } from '../state/notices'
import * as tree from '../state/tree'
import { Choice } from './Choice'
import { Modal } from './Modal'

/** most is how many branches can be chosen from, the newest first. */
const most = 30

export function GraftDialog({ graft: { conversation, from, to } }: { graft: Graft }) {
  const [targets, setTargets] = useState<readonly (readonly [string, string])[]>([])
  const [target, setTarget] = useState(to ?? '')
  const [include, setInclude] = useState<Grafted['include']>('summary')
  const [text, setText] = useState<string | null>(null)
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const close = () => (dialog.value = null)

  useEffect(() => {
    if (to) return
    Promise.all([tree.load(conversation), api.getTree(conversation, undefined, 60)]).then(([forest, { data }]) => {
      const words = new Map(data.map(n => [n.id, n.preview ?? '']))
      const found = otherHeads(forest, from).slice(0, most).map(id => [id, words.get(id)?.replaceAll(/\s+/g, ' ') || 'a message without text'] as const)
      setTargets(found)
      setTarget(found[0]?.[0] ?? '')
      if (found.length === 0) setProblem('There is no other branch. To bring this to an earlier message, use that message’s menu.')
    }, failed('The branches could not be read'))
  }, [])

  useEffect(() => {
    if (!target) return
    const abort = new AbortController()
    setText(null)
    setProblem('')
    api.writeGraft(conversation, target, from, include, abort.signal).then(written => setText(written.text), (error: unknown) => {
      if (!abort.signal.aborted) setProblem(reason(error))
    })
    return () => abort.abort()
  }, [target, include])

  const run = async () => {
    setBusy(true)
    try {
      await actions.graft(conversation, target, from, include, text!.trim())
      close()
    } catch (error) {
      setProblem(reason(error))
      setBusy(false)
    }
  }
  return (
    <Modal title={to ? 'Bring back to here' : 'Bring to another branch'} close={close}>
      <p>What this branch said since the two parted is added there as one message. This branch stays as it is.</p>
      <div class="graft-how">
        {targets.length > 0 && <span>To</span>}
        {targets.length > 0 && <Choice label="To the branch that ends in" value={target} choices={targets} choose={setTarget} />}
        <span>as</span>
        <Choice label="What is brought" value={include} choices={[['summary', 'a summary'], ['messages', 'word for word']]} choose={setInclude} />
      </div>
      {text === null && !problem && <p role="status">Writing…</p>}
      {text !== null && (
        <textarea
          class="graft-text" rows={10} dir="auto" aria-label="Text that is brought" value={text} spellcheck
          onInput={event => setText(event.currentTarget.value)}
        />
      )}
      {problem && <p class="bad" role="alert">{problem}</p>}
      <div class="modal-foot">
        <button type="button" class="secondary" autoFocus onClick={close}>Cancel</button>
        <button type="button" class="primary" disabled={busy || !text?.trim()} onClick={() => void run()}>Bring it there</button>
      </div>
    </Modal>
  )
}

/** otherHeads are the ends of the branches that a branch doesn't lead to, the newest first. */
function otherHeads(forest: Forest, from: string): string[] {
  const heads: string[] = []
  for (const knot of forest.byId.values()) if (knot.children.length === 0 && knot.id !== from) heads.push(knot.id)
  return heads.reverse()
}
