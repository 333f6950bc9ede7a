// Readings of what changes: one after the other, so that an older answer never
// takes the place of a newer one.

/**
 * inTurn gives a function that reads something again. Calls during a reading
 * have it read once more, after that one, and all of them wait for the last.
 */
export function inTurn(read: () => Promise<void>): () => Promise<void> {
  let reading: Promise<void> | null = null
  let again = false
  const readOn = async () => {
    for (;;) {
      again = false
      const outcome = read()
      await outcome.catch(() => {})
      if (again) continue
      reading = null
      return outcome
    }
  }
  return () => {
    again = true
    return (reading ??= readOn())
  }
}
