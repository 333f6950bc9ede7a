// Numbers and times for people.
const whole = new Intl.NumberFormat('en')

export const number = (n: number) => whole.format(n)

/** count says how many of something there are. */
export const count = (n: number, one: string, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`

/** short is a number in few letters: 1,900 is 1.9k. */
export function short(n: number): string {
  if (n < 1000) return String(n)
  const [value, unit] = n < 1_000_000 ? [n / 1000, 'k'] : [n / 1_000_000, 'M']
  return (value < 99.95 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value))) + unit
}

/** duration is a time in milliseconds, to the second. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  return `${Math.floor(seconds / 60)} min${seconds % 60 ? ` ${seconds % 60} s` : ''}`
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' })
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' })

/** when is a time, with its day where that isn't today, and its year where that isn't this one. */
export function when(time: string, now = new Date()): string {
  const t = new Date(time)
  return (t.toDateString() === now.toDateString() ? clock : t.getFullYear() === now.getFullYear() ? day : dayOfYear).format(t)
}

export const whenFully = (time: string) => full.format(new Date(time))

const monthOfYear = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric' })

/** period is the group of a list in which a time stands. */
export function period(time: string, now = new Date()): string {
  const t = new Date(time)
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime()
  const days = Math.ceil((midnight - t.getTime()) / 86_400_000)
  if (days <= 0) return 'Today'
  if (days === 1) return 'Yesterday'
  if (days <= 7) return 'Last 7 days'
  return monthOfYear.format(t)
}

/** nameOf is a conversation's title, or what stands for one: a new conversation gets its title within a moment. */
export const nameOf = (c: { title: string; created_at: string }, now = new Date()) =>
  c.title || (now.getTime() - new Date(c.created_at).getTime() < 60_000 ? 'New conversation' : 'Untitled')
