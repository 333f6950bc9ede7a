package web_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/web"
)

// TestDocs opens the API reference in both colours: it shows every operation and
// its examples, sends a request, breaks no policy and asks no other host, which
// every tab checks.
func TestDocs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.conversation("Growth", "What grows?", "Hazel.")
	b := newTab(t, s, web.Docs)
	b.until(`document.querySelectorAll('.opblock').length > 30`)
	b.snapshot("docs-light")
	ground := `getComputedStyle(document.documentElement).backgroundColor`
	if is := eval[string](b, ground); is != "rgba(0, 0, 0, 0)" {
		t.Errorf("the ground is %s", is)
	}

	open := func(operation string) string {
		id := "#operations-conversations-" + operation
		eval[any](b, `{ const e = document.querySelector($1); e.scrollIntoView(); e.querySelector('.opblock-summary-control').click() }`, id)
		b.until(`document.querySelector($1)`, id+" .opblock-body .responses-table")
		return id
	}
	open("createConversation")
	b.shows("An orchard") // of the example
	b.snapshot("docs-operation-light")
	b.prefer(true, true)
	b.until(ground + ` !== 'rgba(0, 0, 0, 0)'`)
	b.snapshot("docs-operation-dark")

	list := open("listConversations")
	eval[any](b, `document.querySelector($1).click()`, list+" .try-out__btn")
	b.until(`document.querySelector($1)`, list+" .execute")
	eval[any](b, `document.querySelector($1).click()`, list+" .execute")
	b.until(`document.querySelector($1)?.innerText.includes('Growth')`, list+" .live-responses-table")
	if !slices.ContainsFunc(b.requests(), func(url string) bool { return strings.HasSuffix(url, "/openapi.yaml") }) {
		t.Errorf("the reference doesn't read openapi.yaml: %q", b.requests())
	}
}
