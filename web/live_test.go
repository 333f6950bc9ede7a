package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// another is another server on the site's database.
func (s *site) another() *site {
	s.t.Helper()
	api := check.Must(server.New(server.Config{Store: s.store, Keys: s.keys, Loopback: true}))(s.t)
	other := &site{t: s.t, store: s.store, keys: s.keys, api: api}
	other.serve("127.0.0.1:0")
	s.t.Cleanup(func() {
		other.web.CloseClientConnections()
		other.web.Close()
	})
	return other
}

// TestTwoServersTwoBrowsers has two browsers show one conversation, each by its own
// server. Each shows what the other does, asks before it branches, and both end up
// with the same tree.
func TestTwoServersTwoBrowsers(t *testing.T) {
	t.Parallel()
	m := newPuppet()
	s := newSite(t, m)
	other := s.another()
	id, messages := s.conversation("Two browsers", "One?", "One.")
	path := fmt.Sprintf("/c/%s/%s", id, messages[1])
	left, right := newTab(t, s, path), newTab(t, other, path)
	for _, b := range []*tab{left, right} {
		b.until(`document.querySelector($1) && document.querySelector('.map-item')`, row(messages[1])) // and so knows the tree
	}

	// What one sends shows at the other: there is more below, and an answer runs.
	left.send("From the left")
	m.say("The left's ")
	right.shows("The branch goes on below")
	right.click(".composer textarea", "")
	right.keys("From the right")
	right.keys(kb.Enter)
	right.until(`document.querySelector('dialog[open] h2')?.innerText === 'There is a newer message'`)
	right.view("newer-message")
	right.click("dialog button", "Cancel")
	right.until(`!document.querySelector('dialog[open]') && document.querySelector('.composer textarea').value === 'From the right'`)
	right.click(".banner button", "Show the rest")
	right.shows("From the left")
	right.until(`document.querySelector('.live')?.innerText.includes("The left's")`)
	right.view("answer-elsewhere")
	// A browser that is opened amid the answer shows it running.
	late := newTab(t, other, "/c/"+id.String())
	late.until(`document.querySelector('.live')?.innerText.includes("The left's")`)
	m.say("answer.", end)
	for _, b := range []*tab{left, right, late} {
		b.until(`!document.querySelector('.live') && document.body.innerText.includes("The left's answer.")`)
	}

	// A title, and another conversation.
	left.click(".title button", "")
	left.keys("Two browsers!")
	left.click(".composer textarea", "")
	s.conversation("Made elsewhere", "Hello?")
	for _, b := range []*tab{right, late} {
		b.until(`document.querySelector('.title').innerText === 'Two browsers!'`)
		b.until(`[...document.querySelectorAll('.entry')].some(e => e.innerText.includes('Made elsewhere'))`)
	}

	// All show the same branch, and there is but one.
	var shown [][]uuid.UUID
	for _, b := range []*tab{left, right, late} {
		_, head := b.ids()
		shown = append(shown, []uuid.UUID{head})
	}
	check.That(t, slices.Equal(shown[0], shown[1]) && slices.Equal(shown[0], shown[2]),
		"the browsers show %v", shown)
	page, err := s.store.Branches(t.Context(), id, tree.Paging{})
	check.That(t, err == nil && len(page.Data) == 1, "%d branches, %v", len(page.Data), err)

	// Another answer by one is a version beside the answer that the others stay at.
	right.click(".message.last .actions button", "regenerate")
	m.say("The right's answer.", end)
	right.until(`!document.querySelector('.live') && document.querySelector('.message.last .siblings')?.innerText.trim() === '2/2'`)
	for _, b := range []*tab{left, late} {
		b.until(`document.querySelector('.message.last .siblings')?.innerText.trim() === '1/2'`)
		b.shows("The left's answer.")
		b.hides("The right's answer.")
	}

	// A message that is deleted by no browser at all goes from each.
	_, head := left.ids()
	s.call("DELETE", fmt.Sprintf("/v1/conversations/%s/messages/%s", id, head), "", nil)
	for _, b := range []*tab{left, right, late} {
		b.until(`document.querySelector('.message.last') && !document.querySelector('.message.last .siblings')`)
		b.hides("The left's answer.")
	}
}

// After a stop of the server the page shows what it missed, and what comes then.
func TestEventsAfterTheServerComesBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Away", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	pinned := func(message uuid.UUID) { b.until(`document.querySelector($1)`, row(message)+" .pinned") }
	pin := func(message uuid.UUID) {
		s.call("PATCH", fmt.Sprintf("/v1/conversations/%s/messages/%s", id, message), `{"pinned":true}`, nil)
	}
	b.until(`document.querySelector($1)`, row(messages[1]))
	pin(messages[0])
	pinned(messages[0]) // it listens

	s.goes()
	b.shows("The server doesn’t answer.")
	aside := s.append(id, messages[0], "assistant", "Also one.")
	s.conversation("Made meanwhile", "Two?")
	s.comesBack()
	b.hides("The server doesn’t answer.")
	b.until(`document.querySelector('.message.last .siblings')?.innerText.trim() === '1/2'`)
	b.until(`[...document.querySelectorAll('.entry')].some(e => e.innerText.includes('Made meanwhile'))`)
	pin(messages[1])
	pinned(messages[1])
	s.append(id, aside, "user", "And then?")
	s.append(id, messages[1], "user", "Here, too?")
	b.shows("The branch goes on below")
}

// TestLateAnswer has an older state of a branch come after a newer one: the newer one stays.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Late", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	pinned := fmt.Sprintf(`document.querySelector(%q)`, row(messages[0])+" .pinned")
	pin := func(is bool) {
		t.Helper()
		s.call("PATCH", fmt.Sprintf("/v1/conversations/%s/messages/%s", id, messages[0]), fmt.Sprintf(`{"pinned":%t}`, is), nil)
	}
	pin(true)
	b.until(pinned) // it listens
	pin(false)
	b.until("!" + pinned)

	eval[any](b, holdAnswers)
	const read = `window.under === window.held && window.read.includes($1)`
	b.hold("/transcript")
	pin(true)
	b.until("window.held > 0 && "+read, "/v1/conversations/"+id.String())
	b.pass()
	eval[any](b, `window.read = []`)
	pin(false)
	b.until(read, "/v1/conversations/"+id.String())
	b.release()
	b.until("!" + pinned)
	check.That(t, !eval[bool](b, "Boolean("+pinned+")"), "the page shows the older state")
}

// TestChangeBeforeTheStream changes a branch after the page has read it and before it listens.
func TestChangeBeforeTheStream(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Early", "One?", "One.")
	b := newTab(t, s, "/")
	b.atStart(`{
		const fetched = window.fetch.bind(window)
		const listening = new Promise(listen => (window.listen = listen))
		window.fetch = async (path, options) => {
			if (String(path).endsWith('/v1/events')) await listening
			return fetched(path, options)
		}
	}`)
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.until(`document.querySelector('.map-item')`) // it knows the tree
	s.call("PATCH", fmt.Sprintf("/v1/conversations/%s/messages/%s", id, messages[0]), `{"pinned":true}`, nil)
	eval[any](b, `window.listen()`)
	b.until(`document.querySelector($1)`, row(messages[0])+" .pinned")

	b.do(chromedp.Reload())
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.until(`document.querySelector('.map-item')`)
	s.append(id, messages[1], "user", "Faster?")
	eval[any](b, `window.listen()`)

	// It asks before it branches off beside what it wasn't told.
	b.shows("The branch goes on below")
	b.click(".composer textarea", "")
	b.keys("Slower?")
	b.keys(kb.Enter)
	b.until(`document.querySelector('dialog[open] h2')?.innerText === 'There is a newer message'`)
}

// TestPageThatIsLeftListensNoMore holds that a page which the browser keeps for the way
// back holds no connection, of which there are six, and listens when it is back.
func TestPageThatIsLeftListensNoMore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s, "/")
	b.atStart(`{
		const fetched = window.fetch.bind(window)
		window.streams = []
		window.fetch = (path, options) => {
			if (String(path).endsWith('/v1/events')) window.streams.push(options.signal)
			return fetched(path, options)
		}
	}`)
	b.do(chromedp.Navigate(s.url))
	b.until(`window.streams?.length === 1`)
	if !eval[bool](b, `(window.dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })), window.streams[0].aborted)`) {
		t.Error("it listens still")
	}
	b.until(`window.streams.length === 2 && !window.streams[1].aborted`)
}
