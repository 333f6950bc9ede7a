// What is chosen of a few, as a button that opens the others: the page's own in
// place of the system's, which looks and measures differently everywhere.
import { Icon } from './icons'
import { Menu } from './Menu'

export function Choice<V extends string>({ label, value, choices, choose, class: kind = '', name, title, invalid }: {
  label: string
  value: V
  /** Values with words for them. */
  choices: readonly (readonly [V, string])[]
  choose: (value: V) => void
  class?: string
  name?: string
  title?: string
  invalid?: boolean
}) {
  const words = choices.find(([v]) => v === value)?.[1] ?? value
  return (
    <Menu
      label={label} class={`choice ${kind}`} start value={value} name={name} title={title ?? label} aria-label={`${label}: ${words}`} aria-invalid={invalid || undefined}
      items={choices.map(([v, what]) => ({ label: what, chosen: v === value, run: () => v !== value && choose(v) }))}
    >
      <span class="choice-text" dir="auto">{words}</span>
      <Icon name="unfold" />
    </Menu>
  )
}
