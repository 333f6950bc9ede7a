// Signals that outlive the page: they stand in the browser's local storage.
import { effect, signal, type Signal } from '@preact/signals'

/** stored is a signal whose value is read from storage, and written there when it changes. */
export function stored<T extends string>(name: string, fallback: T, allowed: readonly T[]): Signal<T> {
  const found = localStorage.getItem(name) as T | null
  const s = signal<T>(found !== null && allowed.includes(found) ? found : fallback)
  effect(() => localStorage.setItem(name, s.value))
  return s
}
