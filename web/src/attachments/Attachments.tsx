// The pictures and files of a message, as the transcript shows them.
import { useEffect, useState } from 'preact/hooks'
import type { Content, Part } from '../api/types'
import { attachments } from '../text/content'
import { bytes } from './bytes'
import * as store from './store'

export function Attachments({ content }: { content: Content | undefined }) {
  const parts: Part[] = Array.isArray(content) ? content : []
  const ours = parts.map(store.named).filter(n => n !== null)
  const others = attachments(parts.filter(p => store.named(p) === null))
  if (ours.length + others.length === 0) return null
  return (
    <ul class="attachments">
      {ours.map((n, i) => <li key={i} class={n.image ? 'thumbnail' : 'file'}>{n.image ? <Thumbnail named={n} /> : <FileChip named={n} />}</li>)}
      {others.map(a => <li key={a.name}>{a.image ? <img src={a.image} alt={a.name} /> : a.name}</li>)}
    </ul>
  )
}

function Thumbnail({ named }: { named: store.Named }) {
  const [url, setURL] = useState<string | null>(null)
  const [missing, setMissing] = useState(false)
  useEffect(() => {
    let here = true
    store.load(named.hash).then(l => here && setURL(l.url)).catch(() => here && setMissing(true))
    return () => {
      here = false
    }
  }, [named.hash])
  const name = named.name || 'picture'
  if (missing) return <span class="lost">{name} (can’t be read)</span>
  return (
    <button type="button" class="plain-button" aria-label={`Open ${name}`} title={name} onClick={() => url && window.open(url, '_blank', 'noopener')}>
      {url ? <img src={url} alt={name} /> : <span class="coming">{name}</span>}
    </button>
  )
}

function FileChip({ named }: { named: store.Named }) {
  const [size, setSize] = useState<number | null>(null)
  useEffect(() => {
    let here = true
    store.size(named.hash).then(n => here && setSize(n)).catch(() => {})
    return () => {
      here = false
    }
  }, [named.hash])
  const name = named.name || 'file'
  return (
    <button type="button" class="plain-button" title="Save" onClick={() => void store.save(named)}>
      {name}{size !== null && <span class="size"> {bytes(size)}</span>}
    </button>
  )
}
