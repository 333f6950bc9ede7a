package web_test

import (
	"bytes"
	"testing"

	"github.com/coppice-chat/coppice/testdata"
	"github.com/coppice-chat/coppice/transfer"
)

// TestDemoOpens visits a server that was started with --demo.
func TestDemoOpens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.conversation("Another", "Two?", "Two.")
	if _, err := transfer.Import(t.Context(), s.store, bytes.NewReader(testdata.Demo), transfer.Options{PublicIDs: true}); err != nil {
		t.Fatal(err)
	}
	b := newTab(t, s, "/")
	b.until(`document.querySelector('.title')?.innerText === 'A hedge that grows back'`)
	// Once: whoever goes back to the start finds it.
	b.click(".brand", "")
	b.shows("A conversation is a tree.")
	again := newTab(t, s, "/", beside(b))
	again.until(`document.querySelectorAll('.entry').length === 2`)
	again.shows("A conversation is a tree.")
}
