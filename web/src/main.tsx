import './style/page.css'
import { effect } from '@preact/signals'
import { render } from 'preact'
import { conversation } from './state/branch'
import { pickUp } from './state/replies'
import { App } from './ui/App'
import { listenForKeys } from './ui/keys'

listenForKeys()
effect(() => {
  const title = conversation.value?.title
  document.title = title ? `${title} · Coppice` : 'Coppice'
})
pickUp()
render(<App />, document.getElementById('app')!)
