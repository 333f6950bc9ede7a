// Parts of the page that aren't on the first screen. They are loaded when they are
// shown first, or when the browser has nothing else to do.
import type { ComponentType, FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { returns } from '../state/connection'

/** later are the parts to load when there is time, so that they are there when the server is gone. */
const later: (() => Promise<unknown>)[] = []

/** lazy is a component that comes in a part of its own. Until it is there it is nothing. What fails to load is asked for again when the server is back. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): FunctionComponent<P> {
  let there: ComponentType<P> | null = null
  const get = () => load().then(component => void (there = component))
  later.push(get)
  return props => {
    const [, redraw] = useState(0)
    const Component = there // which may come before the effect runs
    useEffect(() => {
      if (!Component) get().then(() => redraw(1), () => {})
    }, [returns.value])
    return Component && <Component {...props} />
  }
}

/** loadLater loads all parts once the page stands. */
export function loadLater() {
  const idle = 'requestIdleCallback' in window ? (run: () => void) => requestIdleCallback(run) : (run: () => void) => setTimeout(run, 500)
  addEventListener('load', () => idle(() => later.forEach(get => void get().catch(() => {}))))
}
