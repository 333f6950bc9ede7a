package web_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/server"
)

// A puppet is a model that says what a test has it say, when it has it say it.
type puppet struct {
	name   string
	pieces chan string
}

// Pieces that are no text.
const (
	end   = "\x00end"
	fail  = "\x00fail"
	think = "\x00think" // begins a piece of what the model thinks
)

func newPuppet() *puppet { return &puppet{"puppet", make(chan string, 10_000)} }

// say puts pieces of answers in line. After end, the next answer begins.
func (p *puppet) say(pieces ...string) {
	for _, piece := range pieces {
		p.pieces <- piece
	}
}

func (p *puppet) Name() string { return p.name }

func (p *puppet) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	return p.Stream(ctx, req, func(llm.Delta) error { return nil })
}

func (p *puppet) Stream(ctx context.Context, _ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	var said strings.Builder
	response := func() llm.Response {
		return llm.Response{Text: said.String(), Message: assistant(said.String()), FinishReason: "stop", Model: p.name}
	}
	for {
		select {
		case piece := <-p.pieces:
			switch piece {
			case end:
				return response(), nil
			case fail:
				return response(), &llm.Error{Kind: llm.ErrUnavailable, Model: p.name, Detail: "it fell over"}
			}
			if thought, found := strings.CutPrefix(piece, think); found {
				if err := each(llm.Delta{Reasoning: thought}); err != nil {
					return response(), err
				}
				continue
			}
			said.WriteString(piece)
			if err := each(llm.Delta{Content: piece}); err != nil {
				return response(), err
			}
		case <-ctx.Done():
			return response(), &llm.Error{Kind: llm.ErrCanceled, Model: p.name, Err: ctx.Err()}
		}
	}
}

func assistant(text string) json.RawMessage {
	body, _ := json.Marshal(map[string]string{"role": "assistant", "content": text}) // strings marshal
	return body
}

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
	got := eval[string](b, `document.querySelector($1).value`, picker)
	check.That(t, got == "acme-large", "%s is chosen", got)

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
