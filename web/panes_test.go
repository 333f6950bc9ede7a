package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// pane shows the map or the context beside the branch, or on a small screen above it.
func (b *tab) pane(button, shown string) {
	b.t.Helper()
	if !eval[bool](b, `!!document.querySelector($1)`, shown) {
		b.click(".branch-head button", button)
	}
	b.until(`document.querySelector($1)`, shown)
}

// TestPanesInEachLook compacts a branch, reads what the model sees, goes to another
// branch on the map, and switches versions by keys.
func TestPanesInEachLook(t *testing.T) {
	t.Parallel()
	for name, options := range looks {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			id, messages := s.long(40)
			fork := messages[len(messages)-3]
			aside := s.append(id, fork, "user", "And what about hedges?")
			leaf := s.append(id, aside, "assistant", "They are rows of trees.")
			b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, messages[len(messages)-1]), options...)
			b.until(`document.querySelector('.message.last') && document.querySelector('.budget.over, .budget-button')`)

			b.click(".branch-head .menu button", "Conversation")
			b.view("menu-" + name)
			b.click("[role=menuitem]", "Compact now")
			b.until(`document.querySelector('.notice')?.innerText.includes('messages folded')`)
			b.view("compacted-" + name)
			c := s.context(id)
			fold := c.Counts.Prefix + c.Counts.Folded
			b.showMessage(fold, messages[fold])
			b.shows(fmt.Sprintf("%d messages folded", c.Counts.Folded))
			b.click(".fold-rule", "")
			b.until(`document.querySelector('.summary-card .prose')?.innerText.includes('example.org/trees/')`)
			b.view("fold-" + name)
			b.click(".fold-rule", "")

			b.pane("What the model sees", ".context")
			b.until(`document.querySelectorAll('.piece').length === $1 && document.querySelector('.piece.summary')`, len(c.Messages))
			b.click(".piece.summary .piece-head", "")
			b.until(`document.querySelector('.piece-body')?.innerText.includes('coppice-summary')`)
			b.view("context-" + name)
			if eval[bool](b, `innerWidth < 720`) {
				b.click(".side button", "Close")
				b.until(`!document.querySelector('.side')`)
			}

			// The map leads to the other branch, and the keys back.
			b.pane("Map", ".map-item")
			b.until(`document.querySelector($1)`, fmt.Sprintf(`[id="map-%s"]`, messages[len(messages)-1]))
			b.view("map-" + name)
			eval[any](b, `document.querySelector('.map-frame').focus()`)
			b.keys("0")
			b.until(`document.querySelector($1)`, fmt.Sprintf(`[id="map-%s"]`, messages[len(messages)-1]))
			b.keys(kb.ArrowUp)
			b.keys(kb.ArrowUp)
			x, y := b.spot(aside)
			b.clickAt(x, y)
			b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, leaf.String(), row(leaf))
			b.marks("sought", aside)
			eval[any](b, `document.activeElement.blur()`)
			b.keys("[")
			b.until(`location.pathname.endsWith($1)`, messages[len(messages)-1].String())
			b.list()
			b.click(".sidebar-foot button", "Keys and help")
			b.until(`document.querySelector('dialog')?.innerText.includes('Keys')`)
			b.view("keys-" + name)
			b.keys(kb.Escape)
			b.until(`!document.querySelector('dialog')`)
		})
	}
}
