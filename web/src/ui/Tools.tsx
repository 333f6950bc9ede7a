// Calls of tools and their results: one line each, the rest on demand.
import type { Message, ToolCall } from '../api/types'
import { said } from '../text/content'
import { Plain } from './Markdown'

export function ToolCalls({ calls }: { calls: readonly ToolCall[] }) {
  return (
    <>
      {calls.map((call, i) => {
        const name = call.function?.name ?? call.custom?.name ?? 'a tool'
        const given = pretty(call.function?.arguments ?? call.custom?.input ?? '')
        return (
          <details class="tool-call" key={call.id || i}>
            <summary><span class="tool-name">{name}</span><span class="tool-gist" dir="auto">{gist(given)}</span></summary>
            <div class="tool-body"><Plain text={given} /></div>
          </details>
        )
      })}
    </>
  )
}

export function ToolResult({ message }: { message: Message }) {
  const text = said(message)
  return (
    <details class="tool-call">
      <summary><span class="tool-gist" dir="auto">{gist(text) || 'nothing'}</span></summary>
      <div class="tool-body"><Plain text={pretty(text)} /></div>
    </details>
  )
}

const gist = (text: string) => text.slice(0, 400).replaceAll(/\s+/g, ' ').trim().slice(0, 120)

/** pretty lays JSON out over lines; other text stays as it is. */
function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text) || text.length > 100_000) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
