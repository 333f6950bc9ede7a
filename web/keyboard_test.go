package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tabTo presses the Tab key until an element with a selector has the focus.
func (b *tab) tabTo(selector string, modifiers ...kb.Modifier) {
	b.t.Helper()
	for range 80 {
		if eval[bool](b, `document.activeElement.matches($1)`, selector) {
			return
		}
		b.keys(kb.Tab, modifiers...)
		if !eval[bool](b, `document.activeElement === document.body || document.activeElement.matches(':focus-visible')`) {
			b.t.Errorf("the focus is on %s and can't be seen", eval[string](b, `document.activeElement.outerHTML.slice(0, 120)`))
		}
	}
	b.t.Fatalf("the Tab key doesn't lead to %s", selector)
}

// TestKeyboardOnly goes through all of the page without a mouse.
func TestKeyboardOnly(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	b := newTab(t, s, "/")
	// The composer has the focus from the start.
	b.until(`document.activeElement.matches('.composer textarea')`)
	b.keys("First question")
	b.keys(kb.Enter)
	b.until(`document.querySelector('.live')`)
	model.say("First answer.", end)
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.message').length === 2`)
	b.until(`document.activeElement.matches('.composer textarea')`)

	// ↑ edits the last message, Ctrl and Enter send it as a new branch.
	b.keys(kb.ArrowUp)
	b.until(`document.activeElement.matches('.editor textarea')`)
	b.keys(", edited")
	b.keys(kb.Enter, chromedp.ModifierCtrl)
	b.until(`document.querySelector('.live')`)
	model.say("Second answer.", end)
	b.until(`!document.querySelector('.live') && document.querySelector('.siblings')?.innerText.trim() === '2/2'`)
	b.until(`document.activeElement.matches('.composer textarea')`)

	// Shift and Enter make a line.
	b.keys("Two")
	b.keys(kb.Enter, chromedp.ModifierShift)
	b.until(`document.querySelector('.composer textarea').value.startsWith('Two')`)
	b.keys("lines")
	b.keys(kb.Enter, chromedp.ModifierCtrl)
	b.until(`document.querySelector('.live')`)
	model.say("Third ")
	b.until(`document.querySelector('.live.streaming')`)
	b.keys(kb.Escape)
	b.until(`document.querySelector('.ending.stopped')`)

	// Regenerate by Tab and Enter.
	b.tabTo(`.message.last .ending button`, chromedp.ModifierShift)
	b.keys(kb.Enter)
	b.until(`document.querySelector('.live')`)
	model.say("Third answer.", end)
	b.until(`!document.querySelector('.live') && document.querySelector('.message.last .siblings')?.innerText.trim() === '2/2'`)

	// Brackets switch versions; m and c open the panes, ? the list of keys.
	eval[any](b, `document.activeElement.blur()`)
	b.keys("[")
	b.until(`document.querySelector('.message.last .siblings')?.innerText.trim() === '1/2'`)
	b.keys("]")
	b.until(`document.querySelector('.message.last .siblings')?.innerText.trim() === '2/2'`)
	b.keys("c")
	b.until(`document.querySelector('.context')`)
	b.keys("m")
	b.until(`document.querySelector('.map')`)
	b.keys("m")
	b.until(`!document.querySelector('.side')`)
	b.keys("m")
	b.until(`document.querySelector('.map')`)
	b.keys("?")
	b.until(`document.querySelector('dialog')?.innerText.includes('Keyboard')`)
	b.keys(kb.Escape)
	b.until(`!document.querySelector('dialog')`)

	// The map is one stop, and so are the tabs above it.
	b.tabTo(`.map-frame`)
	b.keys(kb.ArrowUp)
	b.until(`document.querySelector('.map-preview')`)
	b.keys(kb.Tab)
	b.until(`document.activeElement.matches('.map-tools button')`)

	// A menu: it opens on Enter, arrows move, Escape goes back to its button.
	b.tabTo(`.branch-head .menu button`)
	b.keys(kb.Enter)
	b.until(`document.activeElement.matches('[role=menuitem]')`)
	b.keys(kb.ArrowDown)
	b.until(`document.activeElement.innerText.startsWith('Compact with')`)
	b.keys(kb.ArrowDown)
	b.until(`document.activeElement.innerText.startsWith('Find in this conversation')`)
	b.keys(kb.ArrowDown)
	b.until(`document.activeElement.innerText.startsWith('Share this branch')`)
	b.keys(kb.ArrowDown)
	b.until(`document.activeElement.innerText.startsWith('Export')`)
	b.keys(kb.End)
	b.keys(kb.Escape)
	b.until(`!document.querySelector('[role=menu]') && document.activeElement.matches('.branch-head .menu button')`)

	// Delete a message: the dialog keeps the focus in it.
	b.tabTo(`.message.last .menu button`)
	b.keys(kb.Enter)
	b.keys(kb.End)
	b.keys(kb.Enter)
	b.until(`document.querySelector('dialog') && document.activeElement.innerText === 'Cancel'`)
	b.keys(kb.Tab)
	b.until(`document.activeElement.innerText.startsWith('Delete')`)
	b.keys(kb.Enter)
	b.until(`!document.querySelector('dialog') && document.querySelector('.message.last .siblings') === null`)

	// The list: F2 renames, arrows move, Enter opens.
	b.tabTo(`.entry a`)
	b.keys(kb.F2)
	b.until(`document.activeElement.matches('.rename')`)
	b.keys("By keyboard")
	b.keys(kb.Enter)
	b.until(`document.querySelector('.title').innerText === 'By keyboard'`)

	// The first stop leads past the list.
	eval[any](b, `(document.activeElement.blur(), document.querySelector('.skip').focus())`)
	b.until(`getComputedStyle(document.activeElement).opacity === '1'`)
	b.audit("skip")
	b.keys(kb.Enter)
	b.until(`document.activeElement.matches('.transcript')`)
}
