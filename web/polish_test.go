package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestListAndDirections opens a conversation that is further down than the list
// has been read.
func TestListAndDirections(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, _ := s.conversation("The oldest", "One?", "One.")
	for i := range 60 {
		s.conversation(fmt.Sprintf("Conversation %d", i))
	}
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelectorAll('.entry').length === 51 && document.querySelector('.entry.current')?.innerText.includes('The oldest')`)
	b.until(`document.querySelector('.group').innerText === 'Open'`)
	// When the page listens, it reads the conversation and the branch's end once more, and
	// the tree only if they changed.
	its := "/v1/conversations/" + id.String()
	const read = `performance.getEntriesByType('resource').filter(e => e.name.split('?')[0].endsWith($1)).length`
	b.until(read+" === 2", its)
	b.until(read+" === 2", "/transcript")
	if n := eval[int](b, strings.Replace(read, "$1", "'/tree'", 1)); n != 1 {
		t.Errorf("the tree was read by %d requests", n)
	}
	// Another title doesn't bring it further up, to the end of what has been read.
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"title":"The very oldest"}`, nil)
	b.until(`document.querySelector('.entry.current').innerText.includes('The very oldest')`)
	if got := eval[string](b, `document.querySelector('.group').innerText`); got != "Open" {
		t.Errorf("the first group is %q", got)
	}
	// Once the list comes to it, it stands there alone.
	b.until(`(document.querySelector('.list').scrollTop = 1e6, document.querySelectorAll('.entry').length === 61 && document.querySelectorAll('.entry.current').length === 1)`)

	// Text of both directions is shown as it is read.
	id, _ = s.conversation("עץ", "שלום, מה שלומך?", "שלום!\n\nAnd English.\n\n- אחת\n- שתיים\n\n- [x] done\n- [ ] open\n\n# One\n\n### Three\n\n```go\nx := 1\n```")
	b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
	b.until(`document.querySelectorAll('.message').length === 2 && document.querySelector('.code')`)
	for selector, want := range map[string]string{
		".message.user .plain": "rtl", ".message.assistant .prose p": "rtl", ".message.assistant .prose p ~ p": "ltr", ".message.assistant ul": "rtl",
		".message.assistant pre": "ltr", ".title button": "rtl", ".entry a": "rtl", ".composer textarea": "ltr",
	} {
		b.until(`document.querySelector($1)`, selector)
		if got := eval[string](b, `getComputedStyle(document.querySelector($1)).direction`, selector); got != want {
			t.Errorf("%s reads %s", selector, got)
		}
	}
	if got := eval[string](b, `getComputedStyle(document.querySelector('.message.assistant ul')).paddingRight`); got != "24px" {
		t.Errorf("the bullets stand %s from the right", got)
	}
	b.view("directions")
}
