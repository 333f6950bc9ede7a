package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestLongConversation opens one of 3,000 messages and goes through all of it.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	const count = 3000
	s := newSite(t)
	id, ids := s.bulk("Three thousand", count, func(i int) (int, string) {
		return i - 1, fmt.Sprintf("Message %d. %s", i, strings.Repeat("It has some text, and now and then **more** of it. ", 1+i%7))
	})
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1) && document.querySelector('.map canvas')`, row(ids[count-1]))
	elements := `document.querySelectorAll('.transcript *').length`
	before := eval[int](b, elements)

	// Up, page by page: older ones come in.
	pages := func() (n int) {
		for _, url := range b.requests() {
			if strings.Contains(url, "/transcript") {
				n++
			}
		}
		return n
	}
	if n := pages(); n > 2 {
		t.Errorf("%d pages were read to open it", n)
	}
	eval[any](b, `document.querySelector('.transcript').focus()`)
	for range 30 {
		b.keys(kb.PageUp)
	}
	b.until(`document.querySelector('.message[data-id]') && !document.querySelector('.missing')`)

	// To the very first, by the Home key, and down again through all of it.
	b.keys(kb.Home)
	b.until(`document.querySelector($1)`, row(ids[0]))
	for at := range 20 {
		eval[any](b, `new Promise(done => {
			const list = document.querySelector('.transcript')
			list.scrollTop = list.scrollHeight * $1 / 20
			requestAnimationFrame(() => requestAnimationFrame(done)) // which the page has heard of then
		})`, at)
		b.until(`document.querySelector('.message[data-id]') && !document.querySelector('.missing')`)
		if n := eval[int](b, elements); n > 4*before+500 {
			t.Fatalf("the transcript has %d elements, and had %d", n, before)
		}
	}
	b.keys(kb.End)
	b.until(`document.querySelector($1)`, row(ids[count-1]))

	// What is looked at doesn't move while what is above it comes in.
	b.scroll(`list.scrollTop -= 30000`)
	b.until(`!document.querySelector($1)`, row(ids[count-1]))
	b.until(`document.querySelector('.message[data-id]') && !document.querySelector('.missing')`)
	b.scroll(``)
	where := `(a => [a.dataset.id, Math.round(a.getBoundingClientRect().top)].join())([...document.querySelectorAll('.message[data-id]')].find(a => a.getBoundingClientRect().top > 100))`
	seen := eval[string](b, where)
	b.scroll(`list.scrollTop -= 200`)
	b.until(`document.querySelector('.message[data-id]') && !document.querySelector('.missing')`)
	b.scroll(`list.scrollTop += 200`)
	check.Equal(t, "the view", eval[string](b, where), seen)
	// A link into the middle opens there.
	b.do(chromedp.Navigate(fmt.Sprintf("%s/c/%s/%s", s.url, id, ids[1500])))
	b.until(`document.querySelector($1)`, row(ids[1500]))
}

// TestPrint prints a branch: all of it, and nothing else.
func TestPrint(t *testing.T) {
	t.Parallel()
	const count = 600
	s := newSite(t)
	id, ids := s.bulk("On paper", count, func(i int) (int, string) { return i - 1, fmt.Sprintf("Message %d, $x_{%d}$.", i, i) })
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(ids[count-1]))
	eval[any](b, `window.print = () => {
		const all = [...document.querySelectorAll('.print .message')]
		window.printed = [all.length, all[0].innerText.includes('Message 0'), all.at(-1).innerText.includes('Message 599'), document.querySelectorAll('.print .math:not(.math-set)').length].join()
	}`)
	b.keys("p", chromedp.ModifierCtrl)
	b.until(`window.printed === '600,true,true,0' && !document.querySelector('.print')`)
}

// showMessage scrolls to the message at a depth of the branch. Rows that weren't
// rendered yet have a height that is guessed, so it goes step by step.
func (b *tab) showMessage(depth int, message uuid.UUID) {
	b.t.Helper()
	b.until(`new Promise(done => {
		const list = document.querySelector('.transcript')
		const found = document.querySelector($1)
		const top = found?.getBoundingClientRect().top
		const atTop = list.scrollTop < 1, atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 1
		if (found && (Math.abs(top - 200) < 2 || atTop && top < 200 || atEnd && top > 200)) return done(true)
		if (found) list.scrollTop += top - 200
		else {
			const shown = [...document.querySelectorAll('.message[aria-posinset]')]
			const first = $2 + 1 - shown.at(0)?.ariaPosInSet, last = $2 + 1 - shown.at(-1)?.ariaPosInSet
			if (first < 0) list.scrollTop += first * 136 + Math.min(0, shown.at(0).getBoundingClientRect().top + 600)
			else if (last > 0) list.scrollTop += last * 136 + Math.max(0, shown.at(-1).getBoundingClientRect().bottom - 600)
		}
		requestAnimationFrame(() => setTimeout(() => done(false), 60))
	})`, row(message), depth)
}

// scroll has a script move the transcript, and waits until the movement is over,
// for the page, too: that takes it a moment after the last step.
func (b *tab) scroll(script string, args ...any) {
	b.t.Helper()
	eval[any](b, `new Promise(done => {
		const list = document.querySelector('.transcript')
		let timer
		const wait = () => { clearTimeout(timer); timer = setTimeout(done, 300) }
		list.addEventListener('scroll', wait)
		`+script+`
		requestAnimationFrame(() => requestAnimationFrame(wait)) // by then, a step was told
	})`, args...)
}

// render scrolls until the message at a depth of the branch is on the page, in
// view or near it.
func (b *tab) render(depth int, message uuid.UUID) {
	b.t.Helper()
	b.until(`(() => {
		if (document.querySelector($1)) return true
		const list = document.querySelector('.transcript')
		const shown = [...document.querySelectorAll('.message[aria-posinset]')]
		const first = shown.at(0)?.ariaPosInSet - 1
		list.scrollTop += $2 < first ? shown.at(0).getBoundingClientRect().top - 400 : shown.at(-1).getBoundingClientRect().bottom - 400
	})()`, row(message), depth)
}
