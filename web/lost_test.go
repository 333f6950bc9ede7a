package web_test

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestLost opens addresses at which nothing is. The page says so and leads on.
func TestLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.conversation("A way on", "One?", "One.")
	b := newTab(t, s, "/nowhere/at/all")
	b.shows("There is nothing at this address.")
	b.until(`document.querySelector('.ways button')`)
	b.view("lost")
	b.click(".ways button", "A way on")
	b.until(`location.pathname.startsWith('/c/') && document.querySelectorAll('.message[data-id]').length === 2`)
	eval[any](b, `history.back()`)
	b.shows("There is nothing at this address.")
	b.click(".welcome button", "Start a new conversation")
	b.until(`location.pathname === '/' && document.querySelector('.begin-with')`)

	b.do(chromedp.Navigate(s.url + "/shared"))
	b.shows("There is nothing at this address.")
	b.send("Is anybody here?")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 2`)
	id, head := b.ids()
	b.until(`document.querySelector('h1').innerText === 'Is anybody here?'`)
	got := s.texts(id, head)
	check.That(t, slices.Contains(got, "Is anybody here?"), "stored is %q", got)

	// Also where a conversation was.
	b = newTab(t, s, "/c/"+uuid.NewString(), narrow...)
	b.until(`document.querySelector('h1')?.innerText === 'Not found' && document.querySelectorAll('.ways button').length === 2`)
	b.audit("gone")
}
