// Signals that outlive the page: they stand in the browser's local storage.
import { effect, signal, type Signal } from '@preact/signals'

/** stored is a signal that begins with what is in storage, if that is allowed. */
export function stored<T extends string>(name: string, fallback: T, allowed: readonly T[]): Signal<T> {
  const found = localStorage.getItem(name) as T | null
  return signal<T>(found !== null && allowed.includes(found) ? found : fallback)
}

/** store writes a signal's value into storage whenever it changes. */
export const store = (name: string, s: Signal<string>) => effect(() => localStorage.setItem(name, s.value))
