package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestOfAnAnswer does what can be done with an answer, in a window and on a telephone.
func TestOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]option{"wide": {alsoDark}, "narrow": narrow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPuppet()
			s := newSite(t, p)

			// Bring it to another branch: the text is changed, stands there with its origin,
			// and the origin leads back.
			id, messages := s.conversation("Hedge", "Which shrub?", "Hazel or willow.", "Hazel it is.", "Good.")
			aside := s.append(id, messages[1], "user", "What would willow cost?")
			from := s.append(id, aside, "assistant", "Willow costs 12 euros a metre, and needs the sun.")
			b := newTab(t, s, fmt.Sprintf("/c/%s/%s", id, from), options...)
			b.click(".message.last [aria-label=More]", "")
			b.click("[role=menuitem]", "Bring to another branch…")
			b.until(`document.querySelector('.graft-text')?.value.includes('12 euros')`)
			b.view("graft-dialog-" + name)
			eval[any](b, `(f => { f.value += ' So hazel stays.'; f.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector('.graft-text'))`)
			b.click(".modal-foot button", "Bring it there")
			b.until(`document.querySelector('.message.last')?.innerText.includes('So hazel stays.')`)
			b.until(`!document.querySelector('dialog')`)
			check.Equal(t, "the other branch says", len(s.texts(id, messages[3])), 4)
			shown := eval[string](b, `document.querySelector('.message.last').innerText`)
			check.Has(t, "the message shows", shown, "From another branch")
			check.Lacks(t, "the message shows", shown, "coppice-graft")
			b.view("graft-" + name)
			b.click(".message.last header .by", "2 messages")
			b.until(`location.pathname.endsWith($1)`, from.String())

			// Go on with one that the token limit cut: a version beside it has both parts.
			id, messages = s.conversation("Count", "Count to four.")
			s.call("POST", "/v1/conversations/"+id.String()+"/messages", fmt.Sprintf(
				`{"parent_id":%q,"role":"assistant","content":"One, two,","metadata":{"reply":{"status":"completed","finish_reason":"length"}}}`, messages[0]), nil)
			b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
			b.shows("Cut at the token limit.")
			b.view("cut")
			p.say(" three, four.", end)
			b.click(".ending button", "Continue")
			b.until(`document.querySelector('.message.last')?.innerText.includes('One, two, three, four.')`)
			b.until(`document.querySelector('.message.last .siblings')?.innerText.includes('2')`)
			b.hides("Cut at the token limit.")

			// Rate it, label it and find it by its label in the map and the list.
			id, messages = s.conversation("Woods", "What is a coppice?", "A wood that is cut.")
			b.do(chromedp.Navigate(s.url + "/c/" + id.String()))
			b.until(`document.querySelector($1)`, row(messages[1]))
			b.click(".message.last .rate", "")
			b.until(`document.querySelector('.rate[aria-label="Good answer"]').ariaPressed === 'true'`)
			b.click(".message.last [aria-label=More]", "")
			b.click("[role=menuitem]", "Label and note…")
			b.until(`document.activeElement.matches('.label-form input')`)
			b.keys("the short one")
			b.audit("label")
			b.keys(kb.Enter)
			b.until(`!document.querySelector('dialog') && document.querySelector('.message.last header').innerText.includes('the short one')`)
			b.view("rated")
			if name == "narrow" {
				b.click(".branch-head button", "Map")
			}
			b.until(`document.querySelector('.map-item[aria-label*="the short one · good · Assistant"]')`)
			if name == "narrow" {
				b.keys(kb.Escape)
				b.until(`!document.querySelector('.side')`)
			}
			var stored struct {
				Rating int
				Label  string
			}
			path := "/v1/conversations/" + id.String() + "/messages/" + messages[1].String()
			s.call("GET", path, "", &stored)
			check.That(t, stored.Rating == 1 && stored.Label == "the short one", "stored is %+v", stored)
			b.click(".message.last .rate", "")
			b.until(`document.querySelector('.rate[aria-label="Good answer"]').ariaPressed === 'false'`)
		})
	}
}

// TestDeleteOne deletes a message alone, once it was taken back: what follows stays.
func TestDeleteOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.conversation("Hedge", "Which shrub?", "Hazel or willow.", "My number is 555.", "Hazel it is.", "Good.", "Plant it.")
	b := newTab(t, s, "/c/"+id.String(), alsoDark)
	b.lasting(never)
	remove := func(i int, text string) {
		b.hover(row(messages[i])+" .body", "")
		b.click(row(messages[i])+" .menu button", "More")
		b.click("[role=menuitem]", "Delete this message")
		b.hides(text)
	}
	remove(2, "555")
	b.audit("deleted-one")
	b.click(".notice button", "Undo")
	b.shows("My number is 555.")
	// One above another that waits goes after it.
	b.lasting(3000)
	remove(4, "Good.")
	b.lasting(0)
	remove(2, "555")
	b.until(`document.querySelectorAll('.message[data-id]').length === 4`)
	b.shows("Hazel it is.")
	_, head := b.ids()
	if got := s.texts(id, head); strings.Join(got, "|") != "Which shrub?|Hazel or willow.|Hazel it is.|Plant it." {
		t.Errorf("stored is %q", got)
	}
}
