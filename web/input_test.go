package web_test

import (
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// find is an expression for the first element in view with a selector and a
// text or name.
const find = `[...document.querySelectorAll($1)].find(e => e.checkVisibility() && (!$2 || (e.getAttribute('aria-label') ?? '').startsWith($2) || e.innerText.trim().startsWith($2)))`

// click clicks the middle of an element, by the mouse. A page that is still
// loading may move between the moment when the element is measured and the
// click. A click that would hit something else is kept from the page, and is
// made again.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	var struck string
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(15 * time.Millisecond) {
		b.until(find, selector, text)
		p := eval[*[2]float64](b, `(e => {
			if (!e) return null
			e.scrollIntoViewIfNeeded?.()
			window.aim = e
			const r = e.getBoundingClientRect()
			return [r.x + r.width / 2, r.y + r.height / 2]
		})(`+find+`)`, selector, text)
		if p == nil {
			continue // gone since
		}
		b.clickAt(p[0], p[1])
		var err error
		struck, err = chromedp.Run(b.ctx, chromedp.Evaluate[string](`(() => {
			const missed = window.struck ?? (window.aim && !window.landed ? 'what moved in between' : '')
			window.aim = window.struck = window.landed = undefined
			return missed
		})()`))
		if struck == "" || err != nil { // the document goes with a click that is a way out of it
			return
		}
	}
	b.snapshot("failed")
	b.t.Fatalf("the click on %s %q would hit %s", selector, text, struck)
}

// guardClicks keeps clicks from the page that miss the element that is aimed
// at, and notes what they would have hit. A click that begins on the element
// and ends beside it, as the page moved in between, has not landed.
const guardClicks = `
	for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
		addEventListener(type, e => {
			if (!window.aim) return
			if (type === 'pointerdown' && !window.aim.contains(e.target)) window.struck = e.target.outerHTML?.slice(0, 200) ?? 'the document'
			if (window.struck) (e.stopImmediatePropagation(), e.preventDefault())
			else if (type === 'click' && window.aim.contains(e.target)) window.landed = true
		}, { capture: true })
	}`

func (b *tab) clickAt(x, y float64) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, x, y), chromedp.MouseClickXY(x, y))
}

// choose opens a menu by its button and takes what stands in it.
func (b *tab) choose(selector, item string) {
	b.t.Helper()
	b.until(`(e => e && (e.scrollIntoView({ block: 'center' }), true))(document.querySelector($1))`, selector)
	b.click(selector, "")
	b.click("[role=menuitemradio]", item)
}

// hover moves the mouse onto an element.
func (b *tab) hover(selector, text string) {
	b.t.Helper()
	b.until(find, selector, text)
	p := eval[[2]float64](b, `(e => { const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })(`+find+`)`, selector, text)
	b.do(chromedp.MouseEvent(chromedp.MouseMoved, p[0], p[1]))
}

// keys presses keys, wherever the focus is. The names of package kb stand for
// keys that write nothing. A key press that the page takes for itself writes
// nothing either, as with a keyboard; chromedp's own events write all the same.
func (b *tab) keys(keys string, modifiers ...kb.Modifier) {
	b.t.Helper()
	for _, key := range keys {
		var down, up input.DispatchKeyEventParams
		for _, event := range kb.Encode(key) {
			for _, m := range modifiers {
				event.Modifiers |= int64(m)
			}
			switch event.Type {
			case kb.KeyUp:
				up = *event
			case kb.KeyChar:
				if len(modifiers) == 0 {
					down.Text, down.UnmodifiedText = event.Text, event.UnmodifiedText
				}
			default:
				down = *event
			}
		}
		command(b, input.DispatchKeyEvent, down)
		command(b, input.DispatchKeyEvent, up)
	}
}

// send types text into the composer and sends it.
func (b *tab) send(text string) {
	b.t.Helper()
	b.click(".composer textarea", "")
	b.keys(text)
	b.keys(kb.Enter)
	b.until(`document.querySelector('.composer textarea').value === ''`)
}
