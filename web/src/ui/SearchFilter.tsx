// Where is searched: in all conversations or in the open one, in those of a tag, of how long.
import { conversation } from '../state/branch'
import { tags } from '../state/conversations'
import { type Scope, scope } from '../state/search'
import { Choice } from './Choice'

export function SearchFilter() {
  const s = scope.value
  const set = (to: Partial<Scope>) => (scope.value = { ...s, ...to })
  return (
    <div class="search-filter" role="group" aria-label="Search in">
      {conversation.value && <button type="button" class="chip" aria-pressed={s.here} onClick={() => set({ here: !s.here })}>This conversation</button>}
      {!s.here && tags.value.length > 0 && (
        <Choice label="Tag" value={s.tag} choose={tag => set({ tag })} choices={[['', 'any tag'], ...tags.value.map(t => [t.tag, t.tag] as const)]} />
      )}
      <Choice
        label="Time" value={s.days} choose={days => set({ days })}
        choices={[['', 'any time'], ['7', 'past week'], ['31', 'past month'], ['366', 'past year'], ['-366', 'older than a year']]}
      />
    </div>
  )
}
