/**
 * inTurn gives a function that does something again. Calls while it is done have
 * it done once more, after that, and all of them wait for the last time: so an
 * older answer never takes the place of a newer one.
 */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let working: Promise<void> | undefined
  let again = false
  const workOn = async () => {
    for (;;) {
      again = false
      const outcome = work()
      await outcome.catch(() => {})
      if (again) continue
      working = undefined
      return outcome
    }
  }
  return () => {
    again = true
    return (working ??= workOn())
  }
}
