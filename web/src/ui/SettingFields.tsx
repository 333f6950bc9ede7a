// The settings of a conversation as fields of a form, each with its meaning.
import type { Settings } from '../api/types'
import { number } from '../text/format'
import { Choice } from './Choice'

type Key = keyof Settings
type Value = Settings[Key]

interface Setting {
  key: Key
  label: string
  meaning: string
  /** What it can be, with words for it; none for a number or a text. */
  choices?: [string | boolean, string][]
  /** It is a share, shown as percent. */
  share?: boolean
  text?: boolean
}

/** windowSettings say how much a context may have. */
export const windowSettings: Setting[] = [
  { key: 'max_context_tokens', label: 'Window', meaning: 'Tokens that the model takes, its answer included.' },
  { key: 'reserved_tokens', label: 'Kept free', meaning: 'Tokens of the window for the answer.' },
]

/** compactionSettings are those that people change. */
export const compactionSettings: Setting[] = [
  {
    key: 'compaction', label: 'Compaction', meaning: 'Who has the older part of a branch folded into a summary.',
    choices: [['auto', 'by itself, when it is due'], ['tool', 'by itself, or when the model asks'], ['manual', 'only when asked for'], ['off', 'never']],
  },
  { key: 'trigger_ratio', label: 'Due at', meaning: 'Percent of the window that the context fills before a compaction is due.', share: true },
  { key: 'keep_ratio', label: 'Stays at the end', meaning: 'Percent of the window for the newest messages, which stay word for word.', share: true },
  { key: 'summary_target_tokens', label: 'Size of a summary', meaning: 'Tokens that a summary should have. At most an eighth of the window is asked for.' },
  {
    key: 'recall', label: 'Looking back', meaning: 'Whether the model may search the folded messages while it answers.',
    choices: [[true, 'may search what is folded'], [false, 'reads the summary only']],
  },
  { key: 'instructions', label: 'For every summary', meaning: 'What each summary should take care of.', text: true },
]

/** rareSettings are the others. */
export const rareSettings: Setting[] = [
  { key: 'trigger_cap_tokens', label: 'Due at, at most', meaning: 'A compaction is due past this many tokens, however large the window is.' },
  { key: 'every_n_messages', label: 'Or after', meaning: 'A compaction is due after this many messages, too. 0 is never.' },
  { key: 'keep_cap_tokens', label: 'At the end, at most', meaning: 'The newest messages that stay have no more tokens than this.' },
  { key: 'min_recent_messages', label: 'Messages that stay', meaning: 'The newest so many stay, whatever their size.' },
  { key: 'keep_user_ratio', label: 'Your words', meaning: 'Percent of the window for your newest folded messages, which stay word for word beside the summary.', share: true },
  { key: 'keep_user_cap_tokens', label: 'Your words, at most', meaning: 'They have no more tokens than this.' },
  {
    key: 'keep_first_user', label: 'Your first message', meaning: 'Whether it stays word for word, as if it were pinned.',
    choices: [['auto', 'stays where tools are called for it'], ['always', 'always stays'], ['never', 'is folded like others']],
  },
  { key: 'max_summary_cost', label: 'Cost in a day', meaning: 'What models may cost for summaries in 24 hours. 0 is any amount.' },
  { key: 'min_fold_messages', label: 'Messages to fold', meaning: 'Fewer than this are not worth a summary: the branch waits for more.' },
  { key: 'min_fold_tokens', label: 'Tokens to fold', meaning: 'Neither are fewer tokens than this.' },
  {
    key: 'look_ahead', label: 'The summarizer sees', meaning: 'With what comes later it judges better; without, more branches share a summary.',
    choices: [['recent', 'also what comes after the fold'], ['none', 'what is folded, and no more']],
  },
  { key: 'anchor_slack_turns', label: 'Free to edit', meaning: 'Your newest so many turns can be edited and answered again without losing the summary.' },
  {
    key: 'digest', label: 'Without a model', meaning: 'When no model gives a summary, an extract of the messages can stand in for it.',
    choices: [['when_needed', 'stands in where the branch wouldn’t fit'], ['always', 'always stands in'], ['never', 'never stands in']],
  },
]

/** Field is one setting. Left empty, the server's holds, which is served if it is known. */
export function Field({ setting: s, own, served, bad, set }: { setting: Setting; own: Value; served: Value; bad: boolean; set: (value: Value) => void }) {
  const shown = (value: Value) => (typeof value === 'number' ? String(s.share ? Math.round(value * 1000) / 10 : value) : String(value ?? ''))
  const invalid = bad ? ({ 'aria-invalid': 'true' } as const) : {}
  if (s.choices) {
    const word = s.choices.find(([value]) => value === served)?.[1]
    return (
      <label class="setting">
        <span>{s.label}</span>
        <Choice
          label={s.label} name={s.key} value={shown(own)} invalid={bad} class="bordered"
          choices={[['', own === undefined && word ? `${word} (the server’s)` : 'as the server'], ...s.choices.map(([v, words]) => [String(v), words] as const)]}
          choose={value => set(s.choices!.find(([v]) => String(v) === value)?.[0])}
        />
        <small>{s.meaning}</small>
      </label>
    )
  }
  if (s.text) {
    return (
      <label class="setting wide">
        <span>{s.label}</span>
        <textarea {...invalid} name={s.key} dir="auto" rows={2} value={shown(own)} placeholder={s.meaning} onInput={event => set(event.currentTarget.value || undefined)} />
      </label>
    )
  }
  return (
    <label class="setting">
      <span>{s.label}{s.share && ', %'}</span>
      <input
        {...invalid} name={s.key} type="number" min={0} step="any" value={shown(own)}
        placeholder={typeof served === 'number' && own === undefined ? `${s.share ? shown(served) : number(served)} (the server’s)` : 'the server’s'}
        onInput={event => {
          const value = event.currentTarget.value
          set(value === '' ? undefined : s.share ? Number(value) / 100 : Number(value))
        }}
      />
      <small>{s.meaning}</small>
    </label>
  )
}
