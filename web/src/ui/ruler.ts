// Heights of the rows of a long list, most of which were never on the screen.

/** estimate is the height of a row that wasn't measured yet, in pixels. */
const estimate = 136

/** A Ruler knows where each row of a list begins. */
export class Ruler {
  private readonly measured = new Map<string, number>()
  private keys: readonly string[] = []
  private offsets = new Float64Array(1)
  private valid = 0 // offsets up to this index hold

  /** reset takes another list's keys. What was measured of its rows counts. */
  reset(keys: readonly string[]) {
    if (keys === this.keys) return
    let same = 0
    while (same < keys.length && keys[same] === this.keys[same]) same++
    if (this.offsets.length !== keys.length + 1) {
      const offsets = new Float64Array(keys.length + 1)
      offsets.set(this.offsets.subarray(0, Math.min(same, this.valid) + 1))
      this.offsets = offsets
    }
    this.valid = Math.min(this.valid, same)
    this.keys = keys
  }

  /** measure notes a row's height and tells whether that is news. */
  measure(index: number, height: number): boolean {
    const key = this.keys[index]
    if (key === undefined || Math.abs((this.measured.get(key) ?? estimate) - height) < 0.01) {
      if (key !== undefined) this.measured.set(key, height)
      return false
    }
    this.measured.set(key, height)
    this.valid = Math.min(this.valid, index)
    return true
  }

  /** offset is where a row begins; that of the count of rows is where the list ends. */
  offset(index: number): number {
    const to = Math.max(0, Math.min(index, this.keys.length))
    for (let i = this.valid; i < to; i++) {
      this.offsets[i + 1] = this.offsets[i]! + (this.measured.get(this.keys[i]!) ?? estimate)
    }
    this.valid = Math.max(this.valid, to)
    return this.offsets[to]!
  }

  get total() {
    return this.offset(this.keys.length)
  }

  /** at is the row that a place in the list lies in. */
  at(y: number): number {
    void this.total
    let low = 0
    let high = this.keys.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.offsets[middle]! <= y) low = middle
      else high = middle - 1
    }
    return Math.max(0, low)
  }
}
