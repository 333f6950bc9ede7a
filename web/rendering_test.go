package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/coppice-chat/coppice/internal/check"
)

// written is an answer with formulas, diagrams and code of several kinds.
const written = `The area is \(\pi r^2\), and a sum:

\[
\sum_{k=1}^{n} k = \frac{n(n+1)}{2}
\]

In a line $$e^{i\pi} + 1 = 0$$ as well. A price of $5 and one of $7 stay, and so does ` + "`\\(code\\)`" + `. A broken one: \(\frac{1\).

` + "```mermaid\nflowchart TD\n  A[Start] --> B{Fits?}\n  B -->|yes| C[Answer]\n  B -->|no| D[Compact] --> B\n```" + `

` + "```mermaid\nsequenceDiagram\n  Alice->>Bob: Hello\n  Bob-->>Alice: Hello again\n```" + `

` + "```mermaid\nflowchart TD\n  A --> [\n```" + `

` + "```go\nfunc main() { println(\"hi\") }\n```" + `

` + "```kotlin\nfun main() { println(\"hi\") }\n```" + `

` + "```nosuchlanguage\nfun main()\n```"

// What draws formulas, diagrams and code is loaded only where there is one.
func TestRendering(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	plain, _ := s.conversation("Plain", "Hello?", "Hello **there**, for $5.")
	id, messages := s.conversation("Shapes", "Show me.", written)
	b := newTab(t, s, "/c/"+plain.String())
	b.until(`document.querySelector('.message strong')`)
	loaded := func(part string) (n int) {
		for _, url := range b.requests() {
			if strings.Contains(url, part) {
				n++
			}
		}
		return n
	}
	for _, part := range []string{"math", "highlight", "languages", "diagrams", "KaTeX"} {
		if n := loaded("/assets/"+part) + loaded("/assets/part-"+part); n > 0 {
			t.Errorf("%d requests for %s where there is nothing for it", n, part)
		}
	}

	b = newTab(t, s, "/c/"+id.String(), dark)
	b.until(`document.querySelectorAll('.math-set .katex').length === 3 && document.querySelectorAll('img.diagram').length === 2`)
	b.until(`document.querySelectorAll('.hljs-keyword').length === 2 && [...document.querySelectorAll('.code-head span')].some(e => e.innerText.includes('can’t be drawn'))`)
	b.until(`[...document.querySelectorAll('img.diagram')].every(i => i.complete && i.naturalWidth > 50)`)
	b.until(`document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Main'))`)
	if got := eval[string](b, `[...document.querySelectorAll('.math')].map(e => e.querySelector('annotation')?.textContent ?? e.innerText).join(' | ')`); got != `\pi r^2 | \sum_{k=1}^{n} k = \frac{n(n+1)}{2} | e^{i\pi} + 1 = 0 | \(\frac{1\)` {
		t.Errorf("the formulas are %s", got)
	}
	b.audit("rendering")
	b.showMessage(1, messages[1])
	b.snapshot("rendering")
	b.scroll(`list.scrollTop += 500`)
	b.snapshot("rendering-2")
	// The text of a diagram is there for those who want it.
	b.click("details summary", "text of the diagram")
	b.until(`document.querySelector('.code details[open] pre').checkVisibility()`)
	if n := loaded("/assets/KaTeX"); n > 8 {
		t.Errorf("%d fonts were loaded", n)
	}

	// Other colours, other pictures.
	before := eval[string](b, `document.querySelector('img.diagram').src`)
	b.click(".sidebar-foot button", "Colours: as the system")
	b.until(`document.querySelector('img.diagram').src !== $1`, before)

	// A diagram that would take the browser's time is drawn when it is asked for.
	id, messages = s.conversation("Slow", "Show me.", "```mermaid\nblock\n  a b\n```")
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`[...document.querySelectorAll('.code-head button')].some(e => e.innerText === 'draw')`)
	b.audit("undrawn")
	check.That(t, !eval[bool](b, `document.querySelector('.diagram-frame, img.diagram') !== null`),
		"it was drawn unasked")
	b.click(".code-head button", "draw")
	b.until(`document.querySelector('img.diagram')?.naturalWidth > 20`)
	b.click("details summary", "text of the diagram")
	b.until(`document.querySelector('.code details[open] .code-head').innerText.trim() === 'mermaid\ncopy'`)
	b.showMessage(1, messages[1])

	// HTML of an answer shows in a frame: its script runs, and sees nothing of the page.
	id, _ = s.conversation("Preview", "A page, please.", "```html\n<h1>Hello</h1><script>\nlet page = 'closed'\ntry { page = parent.document.title } catch {}\nparent.postMessage([origin, page, document.body.innerText].join(), '*')\n</script>\n```")
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`document.querySelector('.code-head')`)
	eval[any](b, `addEventListener('message', event => { window.heard = event.data })`)
	b.click(".code-head button", "preview")
	b.until(`window.heard === 'null,closed,Hello'`)
	b.view("preview")
	b.click(".code-head button", "preview")
	b.until(`!document.querySelector('.preview')`)
}
