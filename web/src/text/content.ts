// What a message says, taken from the shapes that content can have.
import type { Content, Message, Part } from '../api/types'
import { picture } from './blocks'

const parts = (content: Content | undefined): Part[] =>
  content == null ? [] : typeof content === 'string' ? [{ type: 'text', text: content }] : content

/** textOf is a content's text, its text parts one below the other. */
export const textOf = (content: Content | undefined): string =>
  parts(content).map(p => p.text ?? p.refusal ?? '').filter(Boolean).join('\n\n')

/** said is a message's text, or what was refused in its place. */
export const said = (m: Pick<Message, 'content' | 'refusal'>): string => brought(textOf(m.content)) || m.refusal || ''

const tags = /^Between the tags is what another branch [^<]*<coppice-graft>\n([^]*)\n<\/coppice-graft>$/

/** brought is a text without the tags in which it was brought from another branch. */
const brought = (text: string): string =>
  tags.exec(text)?.[1]?.replaceAll(/⟦U\+([0-9A-F]{4,6})⟧/g, (_, code: string) => String.fromCodePoint(parseInt(code, 16))) ?? text

export interface Attachment {
  name: string
  /** Address of an image that is in the message itself, undefined for what the page won't load. */
  image?: string
}

/** nameIn is the name that the address of an attachment ends in. */
function nameIn(url: string): string {
  try {
    return decodeURIComponent(url.split('/')[2] ?? '') || 'image'
  } catch {
    return 'image'
  }
}

/** attachments are the parts that aren't text. */
export const attachments = (content: Content | undefined): Attachment[] =>
  parts(content)
    .filter(p => p.text === undefined && p.refusal === undefined)
    .map(p => {
      const url = p.image_url?.url
      if (url && picture.test(url)) return { name: 'image', image: url }
      if (url?.startsWith('coppice:')) return { name: nameIn(url) }
      return { name: p.file?.filename ?? (url && !url.startsWith('data:') ? url : p.type.replace(/^input_|_url$/, '').replaceAll('_', ' ')) }
    })

/** calls says which tools a message calls, '' if it calls none. */
export const calls = (m: Pick<Message, 'tool_calls'>): string =>
  m.tool_calls?.length ? `calls ${m.tool_calls.map(call => call.function?.name ?? call.custom?.name ?? 'a tool').join(', ')}` : ''

/** roleName is how the page calls a role. */
export const roleName = (role: string): string =>
  ({ user: 'You', assistant: 'Assistant', system: 'System', developer: 'Developer', tool: 'Tool result' })[role] ?? role

/** aboutIt is how a message is called where it is named in one line: by its label, its rating and its role. */
export const aboutIt = (m: Pick<Message, 'label' | 'rating' | 'role'>): string =>
  [m.label, m.rating && (m.rating > 0 ? 'good' : 'bad'), roleName(m.role)].filter(Boolean).join(' · ')
