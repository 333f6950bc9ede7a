package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
)

// long is a conversation of so many messages, too long for its window, with a
// system message in front.
func (s *site) long(count int) (id uuid.UUID, messages []uuid.UUID) {
	s.t.Helper()
	id, _ = s.conversation("A long talk")
	s.call("PATCH", "/v1/conversations/"+id.String(), `{"settings":{"max_context_tokens":4000,"reserved_tokens":500,"summary_target_tokens":200,"min_fold_tokens":100,"compaction":"manual"}}`, nil)
	parent := s.append(id, uuid.Nil, "system", "Be brief, and speak of trees only.")
	messages = append(messages, parent)
	for i := range count {
		role, text := "user", fmt.Sprintf("Question %d: what about tree number %d? ", i, i)
		if i%2 == 1 {
			role, text = "assistant", fmt.Sprintf("Answer %d: tree number %d stands at https://example.org/trees/%d and is %d m high. ", i, i, i, i)
		}
		parent = s.append(id, parent, role, strings.Repeat(text, 4))
		messages = append(messages, parent)
	}
	return id, messages
}

type contextAnswer struct {
	Summary *struct{ ID string }
	Usage   struct {
		ContextTokens int `json:"context_tokens"`
	}
	Counts   struct{ Prefix, Folded, Kept, Tail int }
	Messages []any
}

func (s *site) context(id uuid.UUID) (c contextAnswer) {
	s.t.Helper()
	s.call("GET", fmt.Sprintf("/v1/conversations/%s/branches/active/context", id), "", &c)
	return c
}

// at is the message at a depth of a branch.
func (s *site) at(id, head uuid.UUID, depth int) uuid.UUID {
	s.t.Helper()
	var page struct {
		Data []struct{ ID uuid.UUID }
	}
	s.call("GET", fmt.Sprintf("/v1/conversations/%s/branches/%s/transcript?limit=1000", id, head), "", &page)
	return page.Data[depth].ID
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, messages := s.long(40)
	b := newTab(t, s, "/c/"+id.String())
	b.until(`document.querySelector('.message.last')`)

	// Past the trigger the bar says so, and has the button.
	b.until(`document.querySelector('.budget.over')`)
	b.hover(".budget-button", "")
	b.until(`document.querySelector('.budget .legend')?.innerText.includes('Past the trigger')`)
	b.click(".budget button", "Compact now")
	b.until(`document.querySelector('.notice')?.innerText.includes('messages folded')`)
	c := s.context(id)
	check.Need(t, c.Summary != nil, "there is no summary")
	b.until(`!document.querySelector('.budget.over')`)

	// The marker stands where the folded messages end: at the top of the tail.
	first := messages[c.Counts.Prefix+c.Counts.Folded]
	b.showMessage(c.Counts.Prefix+c.Counts.Folded, first)
	b.shows(fmt.Sprintf("%d messages folded", c.Counts.Folded))
	b.until(`document.querySelector($1).closest('.row').querySelector('.fold')`, row(first))
	b.until(`!document.querySelector($1).matches('.folded')`, row(first))
	b.until(`/ · [\d.]+k? → [\d.]+k? tokens/.test(document.querySelector('.fold').innerText)`)

	// It opens the summary: text, model, and how to undo it.
	b.click(".fold-rule", "")
	b.shows("Summary by offline-digest")
	b.until(`document.querySelector('.summary-card .prose').innerText.includes('example.org/trees/')`)
	b.snapshot("summary")

	// Folded messages stay to be read, dimmed; those kept say so.
	b.showMessage(c.Counts.Prefix+1, messages[c.Counts.Prefix+1])
	b.until(`document.querySelector($1).matches('.folded')`, row(messages[c.Counts.Prefix+1]))
	if c.Counts.Kept > 0 {
		b.showMessage(c.Counts.Prefix+c.Counts.Folded-2, messages[c.Counts.Prefix+c.Counts.Folded-2])
		b.until(`[...document.querySelectorAll('.seen')].some(e => e.innerText === 'kept word for word')`)
	}

	// What the model sees, message by message.
	b.click("[role=tab]", "Context")
	b.until(`document.querySelectorAll('.piece').length === $1`, len(c.Messages))
	b.until(`document.querySelector('.piece.summary') && document.querySelector('.piece.prefix')`)
	tokens := eval[int](b, `[...document.querySelectorAll('.piece-tokens')].reduce((sum, e) => sum + Number(e.innerText.replaceAll(',', '')), 0)`)
	check.Equal(t, "the listed tokens add up to", tokens, c.Usage.ContextTokens)
	b.click(".piece.summary .piece-head", "")
	b.until(`document.querySelector('.piece-body').innerText.includes('coppice-summary')`)
	b.snapshot("context")

	// The next one is merged from it, and tells so.
	parent := messages[len(messages)-1]
	for i := range 12 {
		parent = s.append(id, parent, []string{"user", "assistant"}[i%2], strings.Repeat(fmt.Sprintf("Later, %d: and what about the woods? ", i), 8))
	}
	s.call("POST", fmt.Sprintf("/v1/conversations/%s/branches/active/compactions", id), `{"keep_recent_messages":4}`, nil)
	again := s.context(id)
	check.Need(t, again.Summary != nil && again.Summary.ID != c.Summary.ID,
		"the second summary is %v", again.Summary)
	b.do(chromedp.Navigate(fmt.Sprintf("%s/c/%s/%s", s.url, id, parent)))
	b.until(`document.querySelector('.message.last')`)
	b.until(`document.querySelectorAll('.piece').length === $1`, len(again.Messages))
	depth := again.Counts.Prefix + again.Counts.Folded
	b.click("[role=tab]", "Map")
	b.showMessage(depth, s.at(id, parent, depth))
	b.shows(fmt.Sprintf("%d messages folded", again.Counts.Folded))
	b.click(".fold-rule", "")
	b.shows("Merged from an earlier summary.")
	b.click(".summary-card button", "Show it")
	b.until(`document.querySelector('.summary-card .prose').innerText.includes('example.org/trees/') && !document.querySelector('.summary-card').innerText.includes('Merged')`)
	b.click(".summary-card button", "Back to the newest")
	b.shows("Merged from an earlier summary.")

	// The two are compared, and it is made again with other wishes.
	b.click(".summary-card button", "Compare")
	b.until(`document.querySelector('.differences ins') && document.querySelector('.differences del')`)
	b.view("compared")
	b.click(".summary-card button", "Make again…")
	b.until(`document.querySelector('dialog textarea')`)
	b.keys("Keep the woods.")
	b.click("dialog button", "Make again")
	b.shows("The summary made again")
	made := s.context(id)
	check.Need(t, made.Summary != nil && made.Summary.ID != again.Summary.ID,
		"the summary made again is %v", made.Summary)
	b.click("dialog button", "Done")
	depth = made.Counts.Prefix + made.Counts.Folded
	b.showMessage(depth, s.at(id, parent, depth))
	b.shows(fmt.Sprintf("%d messages folded", made.Counts.Folded))
	b.click(".fold-rule", "")

	// Undo brings the one before back, each time, and then everything.
	b.click("button", "Undo the summary")
	b.until(`!document.querySelector('.summary-card')`)
	b.showMessage(depth, s.at(id, parent, depth))
	b.click(".fold-rule", "")
	b.shows("Merged from an earlier summary.")
	b.click("button", "Undo the summary")
	b.showMessage(c.Counts.Prefix+c.Counts.Folded, first)
	b.shows(fmt.Sprintf("%d messages folded", c.Counts.Folded))
	b.click(".fold-rule", "")
	b.click("button", "Undo the summary")
	b.until(`!document.querySelector('.fold') && !document.querySelector('.message.folded')`)
	got := s.context(id)
	check.That(t, got.Summary == nil, "the summary is still there")
}
