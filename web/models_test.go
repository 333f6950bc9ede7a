package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coppice-chat/coppice/server"
)

// TestModels chooses the model that answers, for the next answers and for one
// alone. The context is measured by the chosen model's window, and an answer
// shows the model that wrote it.
func TestModels(t *testing.T) {
	t.Parallel()
	small, large := newPuppet(), newPuppet()
	small.name, large.name = "acme-small", "acme-large"
	s := newSite(t, small, large)
	id, messages := s.conversation("Models", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[1]))
	const picker = ".model-picker"
	wrote := func(model string) {
		t.Helper()
		b.until(`!document.querySelector('.live') && document.querySelector('.message.last.assistant .by')?.innerText === $1`, model)
	}
	b.until(`document.querySelector($1)?.value === 'acme-small'`, picker)

	small.say("By the small one.", end)
	b.send("Two?")
	wrote("acme-small")
	b.choose(picker, "acme-large")
	b.hover(".budget-button", "")
	b.until(`document.querySelector('.legend')?.innerText.includes('of 35,000 tokens')`)
	b.click(picker, "")
	b.until(`document.activeElement.ariaChecked === 'true'`)
	b.view("picker")
	b.keys(kb.Escape)
	b.until(`document.activeElement.matches($1)`, picker)
	large.say("By the large one.", end)
	b.send("Three?")
	wrote("acme-large")

	// Another answer by the other model, which stays unchosen.
	small.say("By the small one again.", end)
	b.click(".message.last [aria-label=More]", "")
	b.view("regenerate-with")
	b.click("[role=menuitem]", "Regenerate with acme-small")
	b.shows("By the small one again.")
	wrote("acme-small")
	if got := eval[string](b, `document.querySelector($1).value`, picker); got != "acme-large" {
		t.Errorf("%s is chosen", got)
	}

	// The choice is kept; a model that is gone is no choice.
	b.do(chromedp.Reload())
	b.until(`document.querySelector($1)?.value === 'acme-large'`, picker)
	eval[any](b, `localStorage.setItem('coppice.model', 'acme-gone')`)
	b.do(chromedp.Reload())
	b.until(`document.querySelector($1)?.value === 'acme-small'`, picker)

	// The models of a program on this machine answer by one click.
	s.offer.Store(&server.Offer{Name: "Ollama", BaseURL: "http://localhost:11434/v1", Models: []string{"qwen3"}})
	b.do(chromedp.Navigate(s.url))
	b.until(`document.querySelector('.banner')?.innerText.includes('Ollama answers on this machine, with qwen3')`)
	b.view("offer")
	b.click(".banner button", "Use it")
	b.until(`!document.querySelector('.banner')`)
}
