// Colours for code, in the languages that chats are about most. This module is
// loaded when a message has code; languages.ts adds those that are met less.
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import cpp from 'highlight.js/lib/languages/cpp'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import java from 'highlight.js/lib/languages/java'
import json from 'highlight.js/lib/languages/json'
import python from 'highlight.js/lib/languages/python'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'

for (const [name, language] of Object.entries({ bash, cpp, diff, go, java, json, python, rust, sql, typescript, xml, yaml })) {
  hljs.registerLanguage(name, language)
}
hljs.registerAliases(['javascript', 'js', 'jsx', 'mjs'], { languageName: 'typescript' })
hljs.registerAliases(['shell', 'console', 'sh-session', 'shellsession'], { languageName: 'bash' })
hljs.registerAliases(['golang'], { languageName: 'go' })
hljs.registerAliases(['postgres', 'postgresql', 'pgsql'], { languageName: 'sql' })
hljs.registerAliases(['vue', 'svelte'], { languageName: 'xml' })

export { hljs }

/** knows tells whether there are colours for a language. */
export const knows = (language: string) => hljs.getLanguage(language) !== undefined

/** longest is how much code is coloured, in characters: more than that takes too long. */
const longest = 30_000

/** highlight gives code as HTML, and null where it stays plain. */
export function highlight(code: string, language: string): string | null {
  return code.length > longest ? null : hljs.highlight(code, { language, ignoreIllegals: true }).value
}
