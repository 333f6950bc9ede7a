package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestCompare has two models answer a message side by side, marks where the answers
// differ, and keeps one, which becomes the branch. The other one stays as a version.
func TestCompare(t *testing.T) {
	t.Parallel()
	small, large := newPuppet(), newPuppet()
	small.name, large.name = "acme-small", "acme-large"
	s := newSite(t, small, large)
	id, messages := s.conversation("Woods", "Hello?", "Hello.")
	b := newTab(t, s, "/c/"+id.String(), alsoDark)
	b.until(`document.querySelector($1)`, row(messages[1]))
	b.click(".composer textarea", "")
	b.keys("What is a coppice?")
	b.choose(".model-picker", "Several side by side…")
	b.until(`document.querySelectorAll('.compare-models input:checked').length === 2`)
	b.click(".more-settings summary", "How answers were taken")
	b.until(`document.querySelector('dialog .more-settings').innerText.includes('No model has answered yet.')`)
	b.audit("compare-models")
	b.click("dialog button", "Ask for 2 answers")
	large.say("A wood that ")
	small.say("A wood that is cut.", end)
	b.until(`document.querySelectorAll('.compare-column').length === 2 && document.querySelector('.compare-column[aria-label=acme-large] .prose')?.innerText.includes('A wood that')`)
	b.until(`[...document.querySelectorAll('.compare-column')].map(c => c.querySelector('button').innerText).sort().join() === 'Keep this one,Stop'`)
	b.audit("compare-streams")
	large.say("grows again.", end)
	b.until(`document.querySelectorAll('.compare-column .primary').length === 2`)
	b.click(".compare-options label", "Mark differences")
	b.until(`[...document.querySelectorAll('.compare-column ins')].map(e => e.innerText).sort().join('|') === 'grows again|is cut'`)
	b.click(".compare-options label", "Hide names")
	b.until(`[...document.querySelectorAll('.compare-column h3')].map(e => e.innerText).join() === 'Answer A,Answer B'`)
	b.audit("compare-marks")
	b.snapshot("marks")
	b.click(".compare-on textarea", "")
	b.keys("Why?")
	b.click(".compare-on button", "Send to both")
	large.say("For light.", end)
	small.say("For wood.", end)
	b.until(`[...document.querySelectorAll('.compare-column')].map(c => /Why\?[^]*For (light|wood)/.exec(c.innerText)?.[1]).sort().join() === 'light,wood' && document.querySelectorAll('.compare-column .primary').length === 2`)
	b.view("compare-on")
	check.That(t, eval[int](b, `document.querySelectorAll('.message').length`) == 3,
		"before one is kept, an answer stands on the branch")
	b.click(".compare-column[aria-label='Answer B'] button", "Keep this one")
	b.until(`!document.querySelector('dialog') && document.querySelector('.message.assistant .siblings')`)
	last := eval[string](b, `document.querySelector('.transcript').innerText`)
	other := "grows again"
	if strings.Contains(last, other) {
		other = "is cut"
	}
	b.until(`document.querySelector('.message.last').innerText.includes('For ')`)
	b.click(".message.assistant:has(.siblings) [aria-label=More]", "")
	b.click("[role=menuitem]", "Compare versions…")
	b.until(`document.querySelectorAll('.compare-column').length === 2 && document.querySelector('dialog').innerText.includes($1)`, other)
	b.keys(kb.Escape)

	// The branch and another one, from where they part.
	b.click(".branch-head .menu button", "")
	b.click("[role=menuitem]", "Compare branches…")
	b.click(".compare-branches button", "For ")
	b.until(`document.querySelectorAll('.compare-column').length === 2 && [...document.querySelectorAll('.compare-about')].every(e => e.innerText.startsWith('3 messages · '))`)
	b.audit("compare-branches")
	b.snapshot("branches")
}

// One column fills a narrow screen, and a swipe goes to the next one.
func TestCompareOnATelephone(t *testing.T) {
	t.Parallel()
	s := newSite(t, newPuppet())
	id, messages := s.conversation("Woods", "What is a coppice?", "A wood that is cut.")
	second := s.append(id, messages[0], "assistant", "A wood that grows again.")
	b := newTab(t, s, "/c/"+id.String()+"/"+second.String(), size(390, 844), touch)
	b.until(`document.querySelector($1)`, row(second))
	b.click(".message.last [aria-label=More]", "")
	b.click("[role=menuitem]", "Compare versions…")
	b.until(`document.querySelectorAll('.compare-column').length === 2`)
	b.axe("compare-narrow")
	b.snapshot("narrow")
	if width := eval[float64](b, `document.querySelector('.compare-column').offsetWidth / document.querySelector('.compare-columns').clientWidth`); width < 0.95 {
		t.Errorf("a column takes %.2f of the width", width)
	}
	eval[any](b, `document.querySelector('.compare-columns').scrollTo(300, 0)`)
	b.until(`document.elementFromPoint(195, 400).closest('.compare-column') === document.querySelectorAll('.compare-column')[1]`)
}
