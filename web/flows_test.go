package web_test

import (
	"testing"
)

// TestFlowsInEachLook goes once through what other tests try in one look only:
// formulas and diagrams, models, thoughts, another answer, a message that somebody
// else sent meanwhile, and search. Each state is looked over.
func TestFlowsInEachLook(t *testing.T) {
	t.Parallel()
	for name, options := range looks {
		t.Run(name, func(t *testing.T) {
			small, large := newPuppet(), newPuppet()
			small.name, large.name = "acme-small", "acme-large"
			s := newSite(t, small, large)
			id, messages := s.conversation("Shapes", "Show me.", written)
			b := newTab(t, s, "/c/"+id.String(), options...)
			b.until(`document.querySelectorAll('.math-set .katex').length === 3 && [...document.querySelectorAll('img.diagram')].filter(i => i.complete && i.naturalWidth > 50).length === 2`)
			b.showMessage(1, messages[1])
			b.view("formulas-" + name)
			b.click("details summary", "text of the diagram")
			b.until(`document.querySelector('.code details[open] pre').checkVisibility()`)
			b.view("diagram-" + name)

			// Another model thinks and answers, and then the first one does.
			b.until(`document.querySelector('.model-picker')?.value === 'acme-small'`)
			eval[any](b, `{ const p = document.querySelector('.model-picker'); p.value = 'acme-large'; p.dispatchEvent(new Event('change', { bubbles: true })) }`)
			b.say("And in words?")
			large.say(think + "They want words, and not many of them.")
			b.until(`document.querySelector('.live.thinking .reasoning-gist')?.innerText.includes('They want words')`)
			b.view("thinking-" + name)
			large.say("In words.", end)
			b.until(`!document.querySelector('.live') && document.querySelector('.message.last.assistant .by')?.innerText === 'acme-large'`)
			b.click(".message.last .reasoning summary", "Thought")
			b.until(`document.querySelector('.message.last .reasoning-body')?.checkVisibility()`)
			b.view("answer-" + name)
			small.say("In other words.", end)
			b.hover(".message.last", "")
			b.click(".message.last [aria-label=More]", "")
			b.audit("answer's menu " + name)
			b.click("[role=menuitem]", "Regenerate with acme-small")
			b.until(`!document.querySelector('.live') && document.querySelector('.message.last .by')?.innerText === 'acme-small' && document.querySelector('.message.last .siblings')?.innerText.trim().endsWith('2/2')`)

			// Somebody else goes on below this branch.
			_, head := b.ids()
			other := s.append(id, head, "user", "I was faster.")
			b.shows("The branch goes on below")
			b.view("newer-" + name)
			b.say("Me, too.")
			b.until(`document.querySelector('dialog[open] h2')?.innerText === 'There is a newer message'`)
			b.view("behind-" + name)
			large.say("To both of you.", end)
			b.click("dialog button", "Branch here")
			b.until(`!document.querySelector('.live') && document.querySelector('.message.last .body')?.innerText.includes('To both of you.')`)
			if _, now := b.ids(); s.texts(id, now)[4] != "Me, too." || s.texts(id, other)[4] != "I was faster." {
				t.Errorf("the branches are %q and %q", s.texts(id, now), s.texts(id, other))
			}

			// Search, by a word's beginning.
			b.list()
			b.click(".search input", "")
			b.keys("sho")
			b.until(`document.querySelector('.hit mark')?.innerText === 'Show'`)
			b.view("search-" + name)
		})
	}
}
