package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// recordScale notes the numbers of the scale as the map is painted: they stand at
// its left edge.
const recordScale = `{
	const { clearRect, fillText } = CanvasRenderingContext2D.prototype
	window.scale = []
	CanvasRenderingContext2D.prototype.clearRect = function (...box) {
		if (this.canvas.closest?.('.map')) window.scale = []
		return clearRect.apply(this, box)
	}
	CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
		if (this.canvas.closest?.('.map') && x === 12) window.scale.push(text)
		return fillText.call(this, text, x, y)
	}
}`

// TestMapOfALongChat shows one without a fork: a few marks, and a scale that
// tells how deep it is.
func TestMapOfALongChat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, ids := s.bulk("Ten thousand", 10_000, func(i int) (int, string) { return i - 1, fmt.Sprintf("Message %d", i) })
	b := newTab(t, s, "/")
	b.shows("Ten thousand")
	b.atStart(recordScale)
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`document.querySelector($1)`, fmt.Sprintf(`[id="map-%s"]`, ids[len(ids)-1]))
	b.view("deep")
	b.click(".depth select", "")
	eval[any](b, `{ const s = document.querySelector('.depth select'); s.value = 'all'; s.dispatchEvent(new Event('change', { bubbles: true })) }`)
	eval[any](b, `document.querySelector('.map-frame').focus()`)
	b.keys("0")
	inside := `(r => r.y >= f.y && r.y + r.height <= f.y + f.height)(document.querySelector($1).getBoundingClientRect(), 0)`
	b.until(`(f => `+strings.Replace(inside, ", 0)", ")", 1)+`)(document.querySelector('.map-frame').getBoundingClientRect())`, fmt.Sprintf(`[id="map-%s"]`, ids[len(ids)-1]))
	// The scale goes to the end, in steps that have room for their numbers.
	b.until(`window.scale.includes('10,000') || window.scale.some(n => parseInt(n.replaceAll(',', '')) > 8000)`)
	b.until(`new Set(window.scale).size === window.scale.length && window.scale.length < 60`)
	b.snapshot("deep-all")
	b.click(".side-head button", "Full window")
	b.until(`document.querySelector('.side').getBoundingClientRect().width === innerWidth && window.scale.length > 2`)
}

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
