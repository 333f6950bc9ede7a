package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// TestTwoTabs has two tabs write to one branch at once.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	s := newSite(t, llm.Offline(20*time.Millisecond))
	id, messages := s.conversation("Two tabs", "One?", "One.")
	path := fmt.Sprintf("/c/%s/%s", id, messages[1])
	left := newTab(t, s, path)
	right := newTab(t, s, path, beside(left))
	for _, b := range []*tab{left, right} {
		b.until(`document.querySelector($1)`, row(messages[1]))
	}
	left.send("From the left")
	left.until(`document.querySelector('.live') || document.querySelectorAll('.message[data-id]').length === 4`)
	right.send("From the right")
	// It may know of the other's message by now, and then asks.
	right.until(`document.querySelector('.live, dialog[open]') || document.querySelectorAll('.message[data-id]').length === 4`)
	right.until(`([...document.querySelectorAll('dialog[open] button')].find(b => b.innerText === 'Branch here')?.click(), true)`)
	right.until(`document.querySelector('.live') || document.querySelectorAll('.message[data-id]').length === 4`)
	for _, b := range []*tab{left, right} {
		b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 4`)
		// Each stays on its own branch and learns of the other.
		b.until(`document.querySelectorAll('.message.user')[1].querySelector('.siblings')?.innerText.trim().endsWith('/2')`)
	}
	left.shows("From the left")
	right.shows("From the right")
	left.hides("From the right")
	page, err := s.store.Branches(t.Context(), id, tree.Paging{})
	if err != nil || len(page.Data) != 2 {
		t.Errorf("%d branches, %v", len(page.Data), err)
	}
}
