// What is shown besides the branch: theme, side panes, dialogs.
import { computed, effect, signal } from '@preact/signals'
import { store, stored } from './stored'

export type Theme = 'auto' | 'light' | 'dark'

export const theme = stored<Theme>('coppice.theme', 'auto', ['auto', 'light', 'dark'])

const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const systemDark = signal(prefersDark.matches)

/** dark tells whether the page is dark now, whoever decided it. */
export const dark = computed(() => (theme.value === 'auto' ? systemDark.value : theme.value === 'dark'))

export type Panel = 'none' | 'map' | 'context'

/** wide is a screen with room for a pane on the right beside the branch. */
const wideQuery = matchMedia('(min-width: 1080px)')
export const wide = signal(wideQuery.matches)

/** narrow is a screen with room for the branch alone. */
const narrowQuery = matchMedia('(max-width: 719px)')
export const narrow = signal(narrowQuery.matches)

const wanted = stored<Panel>('coppice.panel', 'map', ['none', 'map', 'context'])

/** panel is the pane on the right. On smaller screens it lies over the branch, and starts closed. */
export const panel = signal<Panel>(wide.value ? wanted.value : 'none')

export function showPanel(p: Panel) {
  panel.value = p
  if (wide.value) wanted.value = p
}

export const togglePanel = (p: Panel) => showPanel(panel.value === p ? 'none' : p)

/** list is whether the list of conversations stands beside the branch. */
export const list = stored<'shown' | 'hidden'>('coppice.list', 'shown', ['shown', 'hidden'])

/** drawer is whether the list of conversations is open on a narrow screen. */
export const drawer = signal(false)

/** calm is whether the reader asked for less motion. */
export const calm = matchMedia('(prefers-reduced-motion: reduce)')

/** start puts the theme on the page, and follows the screen and the system. */
export function start() {
  store('coppice.theme', theme)
  store('coppice.panel', wanted)
  store('coppice.list', list)
  effect(() => void (document.documentElement.dataset['theme'] = dark.value ? 'dark' : 'light'))
  prefersDark.addEventListener('change', () => (systemDark.value = prefersDark.matches))
  wideQuery.addEventListener('change', () => {
    wide.value = wideQuery.matches
    panel.value = wide.value ? wanted.value : 'none'
  })
  narrowQuery.addEventListener('change', () => {
    narrow.value = narrowQuery.matches
    drawer.value = false
  })
}
