package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestListShowsTheOpenConversation opens one that is further down than the list
// has been read.
func TestListShowsTheOpenConversation(t *testing.T) {
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
}

// TestDirections shows text of both directions, each as it is read.
func TestDirections(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, _ := s.conversation("עץ", "שלום, מה שלומך?", "שלום!\n\nAnd English.\n\n- אחת\n- שתיים\n\n- [x] done\n- [ ] open\n\n# One\n\n### Three\n\n```go\nx := 1\n```")
	b := newTab(t, s, "/c/"+id.String())
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

// TestTouch holds that what a finger taps has room: 44 pixels for what stands
// alone, and for what stands in a row, its height.
func TestTouch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("On the way", "Where to?", "To the woods.")
	s.append(id, messages[0], "assistant", "Home.")
	b := newTab(t, s, "/c/"+id.String(), narrow...)
	if !eval[bool](b, `matchMedia('(pointer: coarse)').matches`) {
		t.Skip("this browser doesn't take the tab for a touch screen") // see startBrowser
	}
	b.until(`document.querySelector('.message.last')`)
	b.act("On the way", "Rename")
	b.until(`document.activeElement.matches('.rename')`)
	if found := eval[[]string](b, `[...document.querySelectorAll('.branch-head button, .composer button, .rename, .actions button, .siblings button, .sidebar button')].filter(e => e.checkVisibility({ visibilityProperty: true })).
		filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 120))`); len(found) > 0 {
		t.Errorf("too small to touch: %q", found)
	}
	// A telephone zooms in on a field with text smaller than 16 pixels.
	if found := eval[[]string](b, `[...document.querySelectorAll('input:not([type=file], [type=checkbox]), textarea')].filter(e => parseFloat(getComputedStyle(e).fontSize) < 16).map(e => e.outerHTML.slice(0, 120))`); len(found) > 0 {
		t.Errorf("a telephone zooms in on %q", found)
	}
}

// TestSkipLink goes past the list by the keyboard.
func TestSkipLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, _ := s.conversation("Order", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector('.message.last')`)
	eval[any](b, `(document.activeElement.blur(), document.querySelector('.skip').focus())`)
	b.until(`getComputedStyle(document.activeElement).opacity === '1'`)
	b.audit("skip")
	b.keys(kb.Enter)
	b.until(`document.activeElement.matches('.transcript')`)
}
