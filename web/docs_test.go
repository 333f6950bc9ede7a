package web_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/web"
)

// TestDocs opens the API reference: it shows every operation and its examples,
// sends a request, breaks no policy and asks no other host, which every tab checks.
func TestDocs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.conversation("Growth", "What grows?", "Hazel.")
	b := newTab(t, s, web.Docs)
	b.until(`document.querySelectorAll('.opblock').length > 30`)

	open := func(operation string) string {
		id := "#operations-conversations-" + operation
		eval[any](b, `{ const e = document.querySelector($1); e.scrollIntoView(); e.querySelector('.opblock-summary-control').click() }`, id)
		b.until(`document.querySelector($1)`, id+" .opblock-body .responses-table")
		return id
	}
	open("createConversation")
	b.shows("An orchard") // of the example

	list := open("listConversations")
	eval[any](b, `document.querySelector($1).click()`, list+" .try-out__btn")
	b.until(`document.querySelector($1)`, list+" .execute")
	eval[any](b, `document.querySelector($1).click()`, list+" .execute")
	b.until(`document.querySelector($1)?.innerText.includes('Growth')`, list+" .live-responses-table")
	if !slices.ContainsFunc(b.requests(), func(url string) bool { return strings.HasSuffix(url, "/openapi.yaml") }) {
		t.Errorf("the reference doesn't read openapi.yaml: %q", b.requests())
	}
}
