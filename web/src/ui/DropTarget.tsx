// Files that are dragged over the page are imported when they are dropped.
import { useEffect, useState } from 'preact/hooks'
import { importFiles } from '../state/imports'

export function DropTarget() {
  const [over, setOver] = useState(false)
  useEffect(() => {
    let depth = 0 // of elements entered and not left
    const files = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false
    const enter = (event: DragEvent) => {
      if (files(event)) setOver(++depth > 0)
    }
    const leave = (event: DragEvent) => {
      if (files(event)) setOver(--depth > 0)
    }
    const hover = (event: DragEvent) => files(event) && event.preventDefault()
    const drop = (event: DragEvent) => {
      if (!files(event)) return
      event.preventDefault()
      setOver(false)
      depth = 0
      void importFiles(Array.from(event.dataTransfer!.files))
    }
    addEventListener('dragenter', enter)
    addEventListener('dragleave', leave)
    addEventListener('dragover', hover)
    addEventListener('drop', drop)
    return () => {
      removeEventListener('dragenter', enter)
      removeEventListener('dragleave', leave)
      removeEventListener('dragover', hover)
      removeEventListener('drop', drop)
    }
  }, [])
  if (!over) return null
  return (
    <div class="drop" aria-hidden="true">
      <p>Drop to import<br /><small>ChatGPT, Claude, LibreChat, Open WebUI, Coppice and more</small></p>
    </div>
  )
}
