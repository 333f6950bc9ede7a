package web_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestFocusOrder walks through the page with the Tab key: what can be clicked is
// reached, in the order in which it is read, and can be seen meanwhile.
func TestFocusOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Order", "One?", "One.")
	s.append(id, messages[0], "assistant", "Also one.")
	s.conversation("Another", "Two?", "Two.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector('.message.last .siblings') && document.querySelector('.map-item') && document.querySelector('.budget-button') && document.querySelectorAll('.entry').length === 2`)
	type stop struct {
		Name, Role string
		Seen       bool
	}
	var stops []stop
	for !eval[bool](b, `document.activeElement === document.body`) { // to the end, from where the page puts it
		b.keys(kb.Tab)
	}
	for range 100 {
		b.keys(kb.Tab)
		b.until(`Promise.all(document.getAnimations().map(a => a.finished.catch(() => {}))).then(() => true)`)
		at := eval[stop](b, `(e => {
			if (e === document.body) return { Name: '', Role: 'body', Seen: true }
			const r = e.getBoundingClientRect()
			const over = document.elementFromPoint(Math.min(innerWidth - 1, r.x + r.width / 2), Math.min(innerHeight - 1, r.y + r.height / 2))
			return {
				Name: (e.getAttribute('aria-label') || e.innerText || e.placeholder || '').trim().split('\n')[0],
				Role: e.getAttribute('role') || e.tagName.toLowerCase(),
				Seen: e.matches(':focus-visible') && e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !!over && (e.contains(over) || over.contains(e)),
			}
		})(document.activeElement)`)
		if at.Role == "body" {
			break
		}
		stops = append(stops, at)
	}
	var order []string
	for _, at := range stops {
		if !at.Seen || at.Name == "" {
			t.Errorf("the focus is on %+v", at)
		}
		order = append(order, at.Name)
	}
	// In this order; others may stand between.
	at := 0
	for _, want := range []string{
		"New conversation", "Search conversations and messages", "Another", "Actions of Another", "Order", "Import", "Colours: as the system", "Keys and help",
		"Order", "Branch", "edit", "copy", "fork", "More", "Version 2 of 2. Left and right arrow keys switch.", "regenerate", "copy", "fork", "More",
		"Message", "Map", "Close", "Map of the conversation. Arrow keys walk, Enter goes to the message.", "Zoom out", "Forks",
	} {
		i := slices.Index(order[at:], want)
		if i < 0 {
			t.Fatalf("after %d stops the Tab key doesn't lead to %q: %q", at, want, order)
		}
		at += i + 1
	}
}

// TestNarrow uses the page on a telephone.
func TestNarrow(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	id, messages := s.conversation("On the way", "Where to?", "To the woods, by a way of `"+fmt.Sprintf("%0200d", 7)+"` steps.\n\n```\n"+fmt.Sprintf("%0400d", 7)+"\n```")
	other, _ := s.conversation("Somewhere else", "Far?", "Not far.")
	b := newTab(t, s, "/c/"+id.String(), size(360, 740), touch)
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.audit("branch")

	// What can be touched has room for a finger, or room around it.
	small := `[...document.querySelectorAll('button, a[href], textarea, input')].filter(e => e.checkVisibility({ visibilityProperty: true }) && !e.closest('.prose')).
		map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0 && r.right > 0 && r.left < innerWidth && r.height < 24).map(([e]) => e.outerHTML.slice(0, 100))`
	if found := eval[[]string](b, small); len(found) > 0 {
		t.Errorf("too small to touch: %q", found)
	}

	b.click(".composer textarea", "")
	b.keys("And")
	b.keys(kb.Enter) // which makes a line here
	b.keys("then?")
	b.click(".composer .send", "")
	b.until(`document.querySelector('.live')`)
	model.say("Home.", end)
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message[data-id]').length === 4`)
	b.click(".message.last .actions button", "regenerate")
	model.say("Onwards.", end)
	b.until(`document.querySelector('.message.last .siblings')?.innerText.trim() === '2/2'`)
	b.click(".message.last .siblings button", "Previous")
	b.shows("Home.")

	// The map lies over the branch, and goes once it has led somewhere.
	b.click(".branch-head button", "Map")
	b.until(`document.querySelector('.map-item')`)
	b.audit("map")
	_, head := b.ids()
	question := s.at(id, head, 2)
	x, y := b.spot(question)
	b.clickAt(x, y)
	b.until(`!document.querySelector('.side')`)
	b.marks("sought", question)
	b.click(".branch-head button", "What the model sees")
	b.until(`document.querySelectorAll('.piece').length > 2`)
	b.audit("context")
	b.click(".side button", "Close")
	b.until(`!document.querySelector('.side')`)

	// The list as well.
	b.click(".branch-head button", "Conversations")
	b.until(`document.querySelector('.sidebar.open')`)
	b.audit("list")
	b.click(".entry a", "Somewhere else")
	b.until(`location.pathname.startsWith($1) && !document.querySelector('.sidebar.open')`, "/c/"+other.String())
	b.shows("Not far.")
}

// TestTheme has the reader choose the colours.
func TestTheme(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := newTab(t, s, "/", dark)
	b.shows("A conversation is a tree.")
	isDark := `getComputedStyle(document.documentElement).colorScheme === 'dark'`
	b.until(isDark)
	b.click(".sidebar-foot button", "Colours: as the system")
	b.until(`!(` + isDark + `)`)
	b.audit("light on a dark system")
	b.do(chromedp.Reload())
	b.shows("A conversation is a tree.")
	b.until(`!(` + isDark + `)`)
	b.click(".sidebar-foot button", "Colours: light")
	b.until(isDark)
	b.audit("dark")
	b.click(".sidebar-foot button", "Colours: dark")
	b.until(isDark + ` && !document.documentElement.dataset.theme`)
}
