package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestNarrow uses the page on a telephone.
func TestNarrow(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	id, messages := s.conversation("On the way", "Where to?", "To the woods, by a way of `"+fmt.Sprintf("%0200d", 7)+"` steps.\n\n```\n"+fmt.Sprintf("%0400d", 7)+"\n```")
	other, _ := s.conversation("Somewhere else", "Far?", "Not far.")
	b := newTab(t, s, "/c/"+id.String(), narrow...)
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.audit("branch")

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

	// What a finger taps has room: 44 pixels for what stands alone, and for what stands
	// in a row, its height.
	b.act("On the way", "Rename")
	b.until(`document.activeElement.matches('.rename')`)
	if !eval[bool](b, `matchMedia('(pointer: coarse)').matches`) {
		t.Error("this browser doesn't take the tab for a touch screen") // see startBrowser
	}
	if found := eval[[]string](b, `[...document.querySelectorAll('.branch-head button, .composer button, .rename, .actions button, .siblings button, .sidebar button')].filter(e => e.checkVisibility({ visibilityProperty: true })).
		filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 120))`); len(found) > 0 {
		t.Errorf("too small to touch: %q", found)
	}
	// A telephone zooms in on a field with text smaller than 16 pixels.
	if found := eval[[]string](b, `[...document.querySelectorAll('input:not([type=file], [type=checkbox]), textarea')].filter(e => parseFloat(getComputedStyle(e).fontSize) < 16).map(e => e.outerHTML.slice(0, 120))`); len(found) > 0 {
		t.Errorf("a telephone zooms in on %q", found)
	}
	b.keys(kb.Escape)

	// The list as well.
	b.until(`document.querySelector('.sidebar.open') && !document.querySelector('.rename')`)
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
	b.until(isDark + ` && localStorage['coppice.theme'] === 'auto'`)
}
