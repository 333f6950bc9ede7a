/** bytes writes a number of bytes for people. */
export function bytes(n: number): string {
  if (n < 1000) return `${n} B`
  if (n < 1_000_000) return `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)} KB`
  return `${(n / 1_000_000).toFixed(1)} MB`
}
