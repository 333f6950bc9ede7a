package web_test

import (
	"fmt"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// holdAnswers lets a test keep answers from the page, as a slow connection does.
const holdAnswers = `{
	const fetched = window.fetch.bind(window)
	window.holds = []
	window.under = window.held = 0
	window.read = []
	window.fetch = async (path, options) => {
		if (String(path).endsWith('/v1/events')) return fetched(path, options)
		const by = window.holds.find(h => h.pattern.test((options?.method ?? 'GET') + ' ' + path))
		window.under++
		try {
			const response = await fetched(path, options)
			if (by) {
				window.held++
				await by.freed
				window.held--
			}
			return response
		} finally {
			window.under--
			window.read.push(String(path))
		}
	}
}`

// hold keeps the answers to requests whose method and address match a regular
// expression, those that are sent from now on.
func (b *tab) hold(pattern string) {
	b.t.Helper()
	eval[any](b, `{
		const h = { pattern: new RegExp($1) }
		h.freed = new Promise(free => (h.free = free))
		window.holds.push(h)
	}`, pattern)
}

// pass keeps no more answers than those that are kept now.
func (b *tab) pass() {
	b.t.Helper()
	eval[any](b, `{ window.freeing = window.holds; window.holds = [] }`)
}

// release hands the answers over, and waits until the page has done what it does with them.
func (b *tab) release() {
	b.t.Helper()
	b.until(`window.held > 0`)
	eval[any](b, `[...window.holds.splice(0), ...window.freeing ?? []].forEach(h => h.free())`)
	for range 3 {
		b.until(`window.under === 0`)
		eval[any](b, `new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))`)
	}
}

// Of two switches at once, the page stays where it was sent last.
func TestLastSwitchStays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Switches", "Which?", "First.")
	second := s.append(id, messages[0], "assistant", "Second.")
	third := s.append(id, messages[0], "assistant", "Third.")
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, second))
	eval[any](b, holdAnswers)
	b.until(`document.querySelector($1) && document.querySelector('.map-item')`, row(second)+" .siblings")
	b.hold(messages[1].String() + "/newest-leaf")
	b.click(".message.last .siblings button", "Previous")
	b.until(`window.held === 1`)
	b.click(".message.last .siblings button", "Next")
	b.shows("Third.")
	b.release()
	b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, third.String(), row(third))
	c, err := s.store.Conversation(t.Context(), id)
	check.That(t, err == nil && c.HeadID == third, "the head is %v, %v", c.HeadID, err)

	// A way back by the browser ends a switch, too.
	b.hold(messages[1].String() + "/newest-leaf")
	eval[any](b, `document.activeElement.blur()`)
	b.keys("[")
	b.until(`location.pathname.endsWith($1)`, second.String())
	b.keys("[")
	b.until(`window.held === 1`)
	eval[any](b, `history.back()`)
	b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, third.String(), row(third))
	b.release()
	b.until(`location.pathname.endsWith($1) && document.querySelector($2)`, third.String(), row(third))
}
