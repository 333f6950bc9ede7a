import './style/page.css'
import { render } from 'preact'
import { pickUp } from './state/replies'
import { App } from './ui/App'
import { listenForKeys } from './ui/keys'

listenForKeys()
pickUp()
render(<App />, document.getElementById('app')!)
