import assert from 'node:assert/strict'
import test from 'node:test'
import { drawnUnasked } from './unasked'

const lines = (n: number, line: (i: number) => string) => Array.from({ length: n }, (_, i) => line(i)).join('\n')
const nested = (n: number, opens: string, closes: string) => `${lines(n, () => opens)}\na-->b\n${lines(n, () => closes)}`

const at = {
  'a flow chart': 'flowchart TD\n  A[Start] --> B{Fits?}\n  B -->|yes| C[Answer & go]\n  subgraph more\n    C --> D\n  end',
  'blank lines and comments before it': '\n%% a note; block\n\n  sequenceDiagram\n  Alice->>Bob: Hello',
  'nested six deep': `stateDiagram-v2\n${nested(6, 'state s {', '}')}`,
  'many blocks that are not nested': `erDiagram\n${lines(15, i => `A${i} {\nint id\n}`)}`,
  'lines that a carriage return ends': 'pie\r\n"a" : 1\r\n',
}

const asked = {
  'nothing': '',
  'no kind': 'this is no diagram',
  'block': 'block\na',
  'block-beta': 'block-beta\na',
  'mindmap': 'mindmap\n  root',
  'a kind that is unknown here': 'flowchart-elk TD\nA-->B',
  'block after a comment that ends in a kind': '%% x; flowchart TD\nblock\na',
  'block after blank lines': '\n\n  block\n  a',
  'a front matter': '---\nconfig:\n  layout: elk\n---\nflowchart TD\nA-->B',
  'a directive': 'flowchart TD\nA-->B\n%%{init: {"layout": "elk"}}%%',
  'many lines': `flowchart TD\n${lines(50, i => `A${i}`)}`,
  'many statements in a line': `flowchart TD;${'A;'.repeat(50)}`,
  'a long text': `flowchart TD\n${lines(49, () => 'A["a long label of a node that has no end"]')}`,
  'a long line': `sequenceDiagram\nA->>B: ${'word '.repeat(60)}`,
  'nested seven deep': `flowchart TD\n${nested(7, 'subgraph s', 'end')}`,
  'nested in one line': `flowchart TD\n${'subgraph s;'.repeat(7)}${'end;'.repeat(7)}`,
  'all with all': 'flowchart TD\na & b & c & d & e --> f & g & h & i & j',
  'long arrows': `flowchart TD\n${lines(20, i => `A${i} -----------> B`)}`,
}

for (const [what, text] of Object.entries(at)) test(`${what} is drawn unasked`, () => assert.ok(drawnUnasked(text)))
for (const [what, text] of Object.entries(asked)) test(`${what} is drawn when it is asked for`, () => assert.ok(!drawnUnasked(text)))
