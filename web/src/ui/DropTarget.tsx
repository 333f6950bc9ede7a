// Files that are dragged over the page are attached to the next message when they
// are pictures or PDFs or are dropped on its field, or when they turn out to be no
// export of a chat. Exports are imported.
import { useEffect, useState } from 'preact/hooks'
import { attach } from '../attachments/store'
import { importFiles } from '../state/imports'

/** neverImported are the types that no export of a chat has. */
const neverImported = /^image\/|^application\/pdf$/

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
      const dropped = Array.from(event.dataTransfer!.files)
      const composer = event.target instanceof Element && event.target.closest('.composer')
      if (composer || dropped.every(f => neverImported.test(f.type))) attach(dropped)
      else void importFiles(dropped, true)
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
  useEffect(() => {
    document.body.classList.toggle('dragging', over) // the message field stays in sight
  }, [over])
  if (!over) return null
  return (
    <div class="drop" aria-hidden="true">
      <p>Drop an export to import it<br /><small>ChatGPT, Claude, LibreChat, Open WebUI, Coppice and more</small></p>
      <p>Drop another file to attach it to the message</p>
    </div>
  )
}
