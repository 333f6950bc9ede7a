package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestMapOfAWideFamily shows a message with 3,000 answers. All but a few are
// one mark, which opens.
func TestMapOfAWideFamily(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, ids := s.bulk("Three thousand", 3001, func(i int) (int, string) { return min(i-1, 0), fmt.Sprintf("Message %d", i) })
	b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, ids[1500]))
	first := fmt.Sprintf(`[id="map-%s"]`, ids[2])
	b.until(`document.querySelector($1)?.getAttribute('aria-label').includes('1,498 more versions')`, first)
	b.view("wide")
	x, y := b.spot(ids[2])
	b.clickAt(x, y)
	b.until(`!document.querySelector('.map-item[aria-label*="more versions"]')`)
	eval[any](b, `document.querySelector('.map-frame').focus()`)
	b.keys("0")
	b.snapshot("wide-open")

	// More room: the edge moves, and the pane fills the window.
	width := func() float64 {
		return eval[float64](b, `document.querySelector('.side').getBoundingClientRect().width`)
	}
	before := width()
	eval[any](b, `document.querySelector('.side-edge').focus()`)
	b.keys(kb.ArrowLeft)
	b.keys(kb.ArrowLeft)
	b.until(`Math.abs(document.querySelector('.side').getBoundingClientRect().width - $1) < 2`, before+64)
	b.click(".side-head button", "Full window")
	b.until(`document.querySelector('.side').getBoundingClientRect().width === innerWidth`)
	b.view("full")
	b.keys(kb.Escape)
	b.until(`document.querySelector('.side').getBoundingClientRect().width < innerWidth`)
	b.click(".side-head button", "Full window")
	b.click(".side-head button", "Close")
	b.until(`!document.querySelector('.side')`)
}
