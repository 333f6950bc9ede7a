// Pictures and files of messages: those that wait in the composer to be sent, and
// the bytes of those that messages name.
import { signal } from '@preact/signals'
import { coppice } from '../api/http'
import type { Attachment, Part } from '../api/types'
import { failed, note } from '../state/notices'

/** A Waiting is a file on its way to the server, or there, that the next message will name. */
export interface Waiting {
  key: number
  name: string
  size: number
  /** What the server says of it, null while it is on its way. */
  stored: Attachment | null
  /** Address of its pixels, null of a file. */
  preview: string | null
}

/** waiting are the files of the next message, in their order. */
export const waiting = signal<Waiting[]>([])

let keys = 0

const shown = /^image\/(?:png|jpeg|gif|webp)$/

/** attach sends files to the server, for the next message, and gives their keys. */
export const attach = (files: readonly File[]) =>
  files.map(file => {
    const key = ++keys
    void attachOne(key, file)
    return key
  })

async function attachOne(key: number, file: File) {
  const w: Waiting = { key, name: file.name, size: file.size, stored: null, preview: shown.test(file.type) ? URL.createObjectURL(file) : null }
  waiting.value = [...waiting.peek(), w]
  try {
    const stored = await coppice.createAttachment(file, { name: file.name })
    waiting.value = waiting.peek().map(other => (other.key === w.key ? { ...other, stored } : other))
  } catch (error) {
    drop(w.key)
    failed(`“${file.name}” was not attached`)(error)
  }
}

/** drop takes a file out of the next message. */
export function drop(key: number) {
  for (const w of waiting.peek()) if (w.key === key && w.preview) URL.revokeObjectURL(w.preview)
  waiting.value = waiting.peek().filter(w => w.key !== key)
}

/** under is a part that calls its attachment by the name that it has here. */
function under(part: Part, name: string): Part {
  if (part.image_url) {
    const address = part.image_url.url.slice(0, scheme.length + 64)
    return { ...part, image_url: { ...part.image_url, url: address + (name && '/' + encodeURIComponent(name)) } }
  }
  return name ? { ...part, file: { ...part.file, filename: name } } : part
}

/** taken are the files of messages that were sent, by their hashes. */
const taken = new Map<string, Waiting>()

/** giveBack has the files of a message wait again that was not sent. */
export function giveBack(content: string | Part[]) {
  if (typeof content === 'string') return
  const back = content.map(part => taken.get(named(part)?.hash ?? '')).filter(w => w !== undefined)
  waiting.value = [...back.map(w => ({ ...w, key: ++keys })), ...waiting.peek()]
}

/** take gives the content of the next message with its files, and leaves none waiting. It gives null while one is on its way. */
export function take(text: string): string | Part[] | null {
  const all = waiting.peek()
  if (all.some(w => !w.stored)) {
    note('A file is still on its way.')
    return null
  }
  if (all.length === 0) return text
  for (const w of all) {
    drop(w.key)
    taken.set(w.stored!.hash, { ...w, preview: null }) // whose pixels are let go
  }
  return [...(text.trim() ? [{ type: 'text', text }] : []), ...all.map(w => under(w.stored!.part as unknown as Part, w.name))]
}

const scheme = 'coppice:attachment/'

/** A Named is an attachment that a part names. */
export interface Named {
  hash: string
  name: string
  image: boolean
}

/** named reads which attachment a part names, null for none. */
export function named(part: Part): Named | null {
  const address = part.image_url?.url ?? part.file?.file_id ?? ''
  const [, hash, name] = /^coppice:attachment\/([0-9a-f]{64})(?:\/(.*))?$/.exec(address) ?? []
  if (hash === undefined) return null
  let plain = name ?? ''
  try {
    plain = decodeURIComponent(plain)
  } catch {
    // it stays as it is
  }
  return { hash, name: part.file?.filename ?? plain, image: part.image_url !== undefined }
}

/** A Loaded is an attachment's bytes, at an address of the page's own. */
export interface Loaded {
  url: string
  size: number
}

/** loaded are those that were read, by hash. The oldest go first. */
const loaded = new Map<string, Promise<Loaded>>()
const mostLoaded = 100

/** load reads an attachment once. A picture's address can't bring the key, so its bytes come here. */
export function load(hash: string): Promise<Loaded> {
  const there = loaded.get(hash)
  if (there) return there
  const coming = coppice.getAttachment(hash).then(blob => ({ url: URL.createObjectURL(blob), size: blob.size }))
  coming.catch(() => loaded.delete(hash)) // to be tried again
  loaded.set(hash, coming)
  if (loaded.size > mostLoaded) {
    const [oldest, gone] = loaded.entries().next().value!
    loaded.delete(oldest)
    gone.then(l => URL.revokeObjectURL(l.url)).catch(() => {})
  }
  return coming
}

/** size asks for the size of an attachment, and not for its bytes. */
export const size = (hash: string) => coppice.getAttachmentSize(hash)

/** save gives a file to the reader. */
export async function save(n: Named) {
  try {
    const link = document.createElement('a')
    link.href = (await load(n.hash)).url
    link.download = n.name || 'attachment'
    link.click()
  } catch (error) {
    failed('The file could not be read')(error)
  }
}
