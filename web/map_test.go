package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
)

// spot is where an item of the map is on the screen; only items near the
// keyboard's place are known.
func (b *tab) spot(message uuid.UUID) (x, y float64) {
	b.t.Helper()
	selector := fmt.Sprintf(`[id="map-%s"]`, message)
	b.until(`(r => r && [window.wasAt, window.wasAt = r.x + ' ' + r.y].every((at, _, all) => at === all[0]))(document.querySelector($1)?.getBoundingClientRect())`, selector) // it moves no more
	p := eval[[2]float64](b, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector($1).getBoundingClientRect())`, selector)
	return p[0], p[1]
}

func TestMap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Map", "Root?", "Fork here.", "Left?", "Left.")
	right := s.append(id, messages[1], "user", "Right?")
	leaf := s.append(id, right, "assistant", "Right.")
	s.summary(id, leaf, messages[0])
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, messages[3]))
	b.until(`document.querySelector('.map canvas')`)

	// Walk up to the fork by the keyboard, which shows its neighbours.
	eval[any](b, `document.querySelector('.map-frame').focus()`)
	b.keys(kb.ArrowUp)
	b.keys(kb.ArrowUp)
	b.until(`document.querySelector('.map-frame').getAttribute('aria-activedescendant') === $1`, "map-"+messages[1].String())
	b.until(`document.querySelector('.map-preview')?.innerText.includes('Fork here.')`)
	b.until(`document.getElementById($1).ariaLabel === 'Assistant: Fork here., on this branch'`, "map-"+messages[1].String())

	// Click on the other branch's message: its branch opens where it was left off.
	x, y := b.spot(right)
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	b.until(`document.querySelector('.map-preview')?.innerText.includes('Right?')`)
	b.clickAt(x, y)
	b.until(`location.pathname.endsWith($1)`, leaf.String())
	b.marks("sought", right)
	b.until(`fetch($1).then(r => r.json()).then(c => c.head_id === $2)`, "/v1/conversations/"+id.String(), leaf.String())

	// The summary's diamond stands beside its anchor, and tells what it folds.
	b.shows("1 message folded")
	x, y = b.spot(leaf)
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x+14, y))
	b.until(`document.querySelector('.map-preview')?.innerText.includes('Folds 1 message')`)

	// Back by the keyboard: to the left message and Enter.
	eval[any](b, `document.querySelector('.map-frame').focus()`)
	for range 4 {
		b.keys(kb.ArrowUp)
	}
	b.keys(kb.ArrowDown) // on the branch, to the fork
	b.keys(kb.ArrowDown)
	b.keys(kb.ArrowRight) // where the other branch leans
	b.until(`document.querySelector('.map-frame').getAttribute('aria-activedescendant') === $1`, "map-"+messages[2].String())
	b.keys(kb.Enter)
	b.until(`location.pathname.endsWith($1)`, messages[3].String())

	// The space bar closes the branches below, and open them again.
	b.keys(kb.ArrowUp)
	b.until(`document.querySelector('.map-frame').getAttribute('aria-activedescendant') === $1`, "map-"+messages[1].String())
	b.keys(" ")
	b.until(`document.querySelector($1).getAttribute('aria-label').includes('4 messages below, closed')`, fmt.Sprintf(`[id="map-%s"]`, messages[1]))
	b.keys(" ")
	b.until(`!document.querySelector($1).getAttribute('aria-label').includes('closed')`, fmt.Sprintf(`[id="map-%s"]`, messages[1]))

	// With motion the dots come to the same places: the branch goes straight down.
	b.prefer(false, false)
	x, y = b.spot(right)
	check.Eventually(b.t, "the dot to be in its place", func() bool {
		b.do(chromedp.MouseEvent(chromedp.MouseMoved, x+1, y), chromedp.MouseEvent(chromedp.MouseMoved, x, y))
		return eval[bool](b, `!!document.querySelector('.map-preview')?.innerText.includes('Right?')`)
	})
	b.clickAt(x, y)
	b.until(`location.pathname.endsWith($1)`, leaf.String())
	b.until(`document.querySelector($1)?.style.left === document.querySelector($2)?.style.left`, fmt.Sprintf(`[id="map-%s"]`, right), fmt.Sprintf(`[id="map-%s"]`, messages[1]))

	// Words stand beside the dots where there is room for them, and are read only then.
	words := func() bool {
		return slices.ContainsFunc(b.requests(), func(address string) bool { return strings.Contains(address, "/tree?preview=") })
	}
	check.That(t, !words(), "words were read for a map without room for them")
	b.click(".side-head button", "Full window")
	check.Eventually(b.t, "the words", words)
	b.view("words")
}

// What the page holds doesn't grow with the tree, here of 5,000 messages.
func TestLargeMap(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, ids := s.bulk("A grove", 5000, func(i int) (int, string) {
		parent := i - 1
		if i > 400 && i%5 == 0 { // somewhere else, mostly near
			parent -= i % 397
		}
		return parent, fmt.Sprintf("Message %d of the grove", i)
	})
	head := fmt.Sprintf(`[id="map-%s"]`, ids[len(ids)-1])
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, ids[len(ids)-1]))
	b.until(`document.querySelector('.map canvas') && document.querySelector($1)`, head)
	eval[any](b, `document.querySelector('.map-frame').focus()`)
	b.keys("0")
	eval[any](b, `new Promise(done => {
		const frame = document.querySelector('.map-frame'), box = frame.getBoundingClientRect()
		let n = 0
		const step = () => {
			if (++n > 20) return done()
			frame.dispatchEvent(new WheelEvent('wheel', { deltaX: n % 20 - 10, deltaY: 20 - n % 40, ctrlKey: n % 3 === 0, clientX: box.x + 100, clientY: box.y + 200, bubbles: true, cancelable: true }))
			requestAnimationFrame(step)
		}
		requestAnimationFrame(step)
	})`)
	b.keys(".")
	b.until(`document.querySelector($1)`, head)
	n := eval[int](b, `document.querySelectorAll('*').length`)
	check.That(t, n <= 1500, "the page has %d elements", n)
}
