// Files that are read into conversations: dropped on the page, or chosen.
import { signal } from '@preact/signals'
import * as api from '../api/coppice'
import { Problem } from '../api/http'
import type { ImportReport } from '../api/types'
import { attach } from '../attachments/store'
import * as list from './conversations'
import { failed } from './notices'
import { tell } from './tabs'

/** importing names the file that is being read, null where there is none. */
export const importing = signal<string | null>(null)

export interface Imported {
  file: string
  report: ImportReport | null
  error: Error | null
}

/** imported is what came of the last files; it is shown until it is dismissed. */
export const imported = signal<Imported[] | null>(null)

/** importFiles reads files one after the other. Those that are no exports are attached to the next message, if asked to. */
export async function importFiles(files: readonly File[], attaches = false) {
  if (importing.peek() !== null || files.length === 0) return
  const out: Imported[] = []
  const others: File[] = []
  for (const file of files) {
    importing.value = file.name
    try {
      out.push({ file: file.name, report: await api.importFile(file), error: null })
    } catch (error) {
      if (attaches && error instanceof Problem && error.code === 'unknown_format') others.push(file)
      else out.push({ file: file.name, report: null, error: error as Error })
    }
  }
  importing.value = null
  attach(others)
  if (out.length === 0) return
  imported.value = out
  await list.refresh()
  tell({ conversation: null })
}

const demo = document.querySelector<HTMLMetaElement>('meta[name=coppice-demo]')?.content

/** importDemo reads the demonstration conversation that comes with the page, and gives its id. */
export async function importDemo(): Promise<string | null> {
  if (!demo || importing.peek() !== null) return null
  importing.value = 'the demonstration'
  try {
    const file = await (await fetch(demo)).blob()
    await api.importFile(file)
    await list.refresh()
    tell({ conversation: null })
    return list.conversations.peek()?.[0]?.id ?? null
  } catch (error) {
    failed('The demonstration was not imported')(error)
    return null
  } finally {
    importing.value = null
  }
}
