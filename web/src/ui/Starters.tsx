// What a new conversation can begin with, below its first message: two questions
// beside one another, a preset, a prompt and settings.
import { beginTwo } from '../state/actions'
import { dialog } from '../state/dialog'
import { failed } from '../state/notices'
import { beginning, choosePreset, presets } from '../state/settings'
import { Choice } from './Choice'

/** starters are questions asked in two ways, each on a branch of its own. */
const starters = [
  { title: 'Explain it twice', how: 'to a child, and to an engineer', ask: ['Explain to a child of eight why a bicycle stays upright.', 'Explain to an engineer why a bicycle stays upright.'] },
  { title: 'Hear both sides', how: 'the case for, and the case against', ask: ['Make the case for a four-day week, in five points.', 'Make the case against a four-day week, in five points.'] },
  { title: 'Try two tones', how: 'warm, and dry', ask: ['Write a short birthday greeting to a colleague: a warm one.', 'Write a short birthday greeting to a colleague: a dry and witty one.'] },
] as const

export function Starters() {
  return (
    <div class="starters">
      <ul>
        {starters.map(({ title, how, ask }) => (
          <li key={title}>
            <button type="button" title={ask.join('\n')} onClick={() => void beginTwo(ask).catch(failed('The conversation did not begin'))}>
              <svg width="22" height="20" viewBox="0 0 22 20" aria-hidden="true"><path d="M4 0V16M4 0C4 9 17 5 17 13" /><circle cx="4" cy="16" r="3" /><circle cx="17" cy="16" r="3" /></svg>
              <span>{title}<small>{how}</small></span>
            </button>
          </li>
        ))}
      </ul>
      <BeginWith />
    </div>
  )
}

/** BeginWith chooses what a new conversation begins with. */
function BeginWith() {
  const { preset, system, wishes, settings } = beginning.value
  const own = !preset && (system || Object.keys(wishes).length + Object.keys(settings).length > 0)
  const told = presets.value.find(p => p.name === preset)?.description ?? system
  return (
    <div class="begin-with">
      {presets.value.length > 0 && (
        <span>
          Begin with{' '}
          <Choice
            label="Begin with" value={preset} choose={choosePreset}
            choices={[['', own ? 'your own settings' : 'the server’s defaults'], ...presets.value.map(p => [p.name, p.name] as const)]}
          />
        </span>
      )}
      <button type="button" class="plain-button" onClick={() => (dialog.value = { kind: 'settings' })}>Prompt and settings…</button>
      {told && <p class="hint" dir="auto">{told.length > 200 ? told.slice(0, 200) + '…' : told}</p>}
    </div>
  )
}
