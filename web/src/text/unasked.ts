// Which diagrams are drawn without being asked for. Mermaid needs minutes for some
// texts of a few hundred bytes. The frame that draws may share the page's thread,
// and then no timer can end it. So only a small text of a kind whose time grows
// slowly with its text is drawn at once.

/**
 * kinds are those of which the worst small texts that were found take a second.
 * block, mindmap and timeline take longer by their text, gantt and packet by a
 * number in it.
 */
const kinds = new Set(['flowchart', 'graph', 'sequenceDiagram', 'classDiagram', 'stateDiagram', 'stateDiagram-v2', 'erDiagram', 'gitGraph', 'pie', 'quadrantChart', 'xychart', 'xychart-beta', 'journey'])

/** most is how much of each a text may have. */
const most = { characters: 2000, line: 300, statements: 50, depth: 6, ands: 6, strokes: 200 }

const opens = /^(?:subgraph|loop|alt|opt|par|par_over|critical|break|rect|box)\b|\{$/
const closes = /^(?:end\b|\})/

/** drawnUnasked tells whether a text of Mermaid is drawn at once. A text with settings of its own is not: they choose other ways to lay it out. */
export function drawnUnasked(text: string): boolean {
  if (text.length > most.characters || text.includes('%%{')) return false
  const lines = text.split(/[\r\n]/).map(line => line.trim())
  const kind = lines.find(line => line && !line.startsWith('%%')) // that of a text with a front matter is ---
  if (!kinds.has(/^[\w-]*/.exec(kind ?? '')![0])) return false
  if (lines.some(line => line.length > most.line)) return false // the time to wrap a label grows with its square
  const statements = text.split(/[\r\n;]/).map(s => s.trim()).filter(s => s)
  if (statements.length > most.statements || depth(statements) > most.depth) return false
  // a & b --> c & d are four arrows, and ------> goes down by four rows.
  const strokes = text.match(/[-=.~]{2,}/g)?.reduce((n, arrow) => n + arrow.length, 0) ?? 0
  return text.split('&').length - 1 <= most.ands && strokes <= most.strokes
}

/** depth is how deep blocks stand in one another. */
function depth(statements: string[]): number {
  let now = 0, deepest = 0
  for (const s of statements) {
    if (opens.test(s)) deepest = Math.max(deepest, ++now)
    else if (closes.test(s)) now = Math.max(0, now - 1)
  }
  return deepest
}
