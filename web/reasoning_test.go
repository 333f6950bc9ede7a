package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestReasoning follows a model that thinks before it answers: what it thinks
// stands above the answer, closed, can be opened while it comes, and stays as the
// reader has it when the answer is stored.
func TestReasoning(t *testing.T) {
	t.Parallel()
	model := newPuppet()
	s := newSite(t, model)
	id, messages := s.conversation("Thoughts", "One?", "One.")
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector($1)`, row(messages[1]))
	const body, gist = ".reasoning-body", ".reasoning-gist"

	b.send("What is a coppice?")
	b.until(`document.querySelector('.live')`)
	model.say(think+"They ask for a definition.\n\n", think+"Hazel, perhaps, in `code`:\n\n```\nhazel\n```\n\n", think+"Then ash")
	b.until(`document.querySelector('.live.thinking .reasoning-title')?.innerText === 'Thinking…'`)
	b.until(`document.querySelector($1)?.innerText.includes('Then ash') && !document.querySelector($2)`, gist, body)
	b.view("thinking")
	b.click(".reasoning summary", "Thinking…")
	b.until(`document.querySelector($1)?.innerText.includes('They ask for a definition.') && !document.querySelector($2)`, body, gist)
	model.say(think + " and sweet chestnut.")
	b.until(`document.querySelector($1).innerText.includes('Then ash and sweet chestnut.')`, body)
	b.view("thinking-open")
	model.say("A wood ")
	b.until(`document.querySelector('.live.streaming') && document.querySelector('.live .body > .prose')?.innerText.includes('A wood') && !document.querySelector('.reasoning.running')`)
	b.until(`/^Thought/.test(document.querySelector('.live .reasoning-title').innerText) && document.querySelector($1).checkVisibility()`, body)
	model.say("that is cut.", end)
	b.until(`!document.querySelector('.live') && /^Thought/.test(document.querySelector('.message.last .reasoning-title')?.innerText) && document.querySelector('.message.last .reasoning-body')?.checkVisibility()`)
	b.view("thought-open")

	// It is no part of what was said, for the next model and for a copy.
	conversation, head := b.ids()
	got := s.texts(conversation, head)
	check.That(t, got[len(got)-1] == "A wood that is cut.", "stored is %q", got)

	// By keyboard, and anew it is closed.
	eval[any](b, `document.querySelector('.message.last .reasoning summary').focus()`)
	b.keys(kb.Enter)
	b.until(`!document.querySelector($1)`, body)
	b.keys(kb.Enter)
	b.until(`document.querySelector($1)`, body)
	b.do(chromedp.Reload())
	b.until(`document.querySelector('.message.last .reasoning summary') && !document.querySelector($1)`, body)
	b.audit("closed")
	found := eval[int](b, `document.querySelectorAll('.reasoning').length`)
	check.That(t, found == 1, "%d answers show thoughts", found)

	// Stopped while it thinks, there is no answer, and no trace of one.
	b.send("And pollarding?")
	model.say(think + "Hm.")
	b.until(`document.querySelector('.live.thinking')`)
	b.click(".composer .stop", "")
	b.until(`!document.querySelector('.live') && document.querySelectorAll('.reasoning').length === 1`)
	b.shows("ask for an answer")
}
