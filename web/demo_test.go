package web_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/testdata"
	"github.com/coppice-chat/coppice/transfer"
)

// TestDemoOpens visits a server that was started with --demo.
func TestDemoOpens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.conversation("Another", "Two?", "Two.")
	check.Must(transfer.Import(t.Context(), transfer.Into(s.store), bytes.NewReader(testdata.Demo), transfer.Options{PublicIDs: true}))(t)
	b := newTab(t, s, "/")
	b.until(`document.querySelector('.title')?.innerText === 'A hedge that grows back'`)
	// Once: whoever goes back to the start finds it.
	b.click(".brand", "")
	b.shows("A conversation is a tree.")
	again := newTab(t, s, "/", beside(b))
	again.until(`document.querySelectorAll('.entry').length === 2`)
	again.shows("A conversation is a tree.")
}

// Of two first questions the first is shown. Each is answered on its own branch.
func TestStarters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s, "/", alsoDark)
	b.until(`document.activeElement.matches('.begins .composer textarea')`)
	b.view("begins")
	b.click("button", "Try the demonstration")
	b.until(`document.querySelector('.title')?.innerText === 'A hedge that grows back' && document.querySelectorAll('.siblings').length > 0`)
	b.click(".brand", "")
	b.click(".starters button", "Hear both sides")
	b.until(`document.querySelector('.message.ready.assistant') && document.querySelector('.siblings')?.innerText === '1/2'`)
	id, head := b.ids()
	got := s.texts(id, head)
	check.That(t, len(got) == 2 && strings.HasPrefix(got[0], "Make the case for"), "shown is %q", got)
	var tree struct{ Data []struct{ Role string } }
	check.Eventually(b.t, "an answer on either branch", func() bool {
		s.call("GET", "/v1/conversations/"+id.String()+"/tree", "", &tree)
		return len(tree.Data) == 4
	})
	b.view("two-branches")
}
