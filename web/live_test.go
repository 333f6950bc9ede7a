package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// another is another server on the site's database.
func (s *site) another() *site {
	s.t.Helper()
	api, err := server.New(server.Config{Store: s.store, Keys: s.keys, Loopback: true})
	if err != nil {
		s.t.Fatal(err)
	}
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
		b.until(`document.querySelector($1)`, row(messages[1]))
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
	if !slices.Equal(shown[0], shown[1]) || !slices.Equal(shown[0], shown[2]) {
		t.Errorf("the browsers show %v", shown)
	}
	page, err := s.store.Branches(t.Context(), id, tree.Paging{})
	if err != nil || len(page.Data) != 1 {
		t.Errorf("%d branches, %v", len(page.Data), err)
	}

	// A message that is deleted by no browser at all goes from each.
	_, head := left.ids()
	s.call("DELETE", fmt.Sprintf("/v1/conversations/%s/messages/%s", id, head), "", nil)
	for _, b := range []*tab{left, right, late} {
		b.hides("The left's answer.")
	}
}
