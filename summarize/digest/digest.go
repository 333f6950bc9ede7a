// Package digest is the offline summarizer, the last resort: it needs no model
// and no network. It takes sentences out of the messages and writes none of its
// own. So it can't invent, and it can't condense. It chooses: again and again
// it takes the sentence that says the most, by the token, of what no chosen
// sentence says yet.
//
// It works in steps. Messages and the prior summary become items, each with the
// informative words and the facts that it holds (read.go, prior.go, term.go).
// Items get a section and a worth (judge.go). The best of them are chosen
// (pick.go) and laid out under headings, before an index of what else was
// mentioned (layout.go). It uses no clock, no randomness and no map's order, so
// equal input gives equal output.
package digest

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// Name is this summarizer's name in records, in the place of a model's name.
const Name = "offline-digest"

// A Summarizer makes digests. The zero value counts tokens by o200k.
type Summarizer struct {
	Counter tokens.Counter
}

// Summarize returns the digest of all messages to fold. There is no digest only
// if the input holds no text at all.
func (s Summarizer) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) {
	if s.Counter == nil {
		s.Counter = tokens.O200k()
	}
	start := time.Now()
	text := extract(in, s.Counter)
	a := prompt.Attempt{Model: Name, DurationMS: time.Since(start).Milliseconds()}
	_, err := prompt.Clean(text)
	if err != nil {
		a.Error = err.Error()
	}
	return prompt.Result{Text: text, Model: Name, Taken: len(in.Fold), Attempts: []prompt.Attempt{a}}, err
}

// minTokens is the least target, in tokens: a digest has a first line that
// says what it is, and a smaller target is taken for this one.
const minTokens = 32

// extract summarizes without a model. The result has at most in.TargetTokens
// (or minTokens), and fewer where that wouldn't be smaller than what it stands
// for. It is "" only where neither the messages nor the prior summary hold any
// text; otherwise it passes prompt.Clean.
//
// The look-ahead says what matters, and none of its text gets into the result;
// instructions do so by the words they have in common with a sentence.
//
// 100,000 tokens of input were measured to take 8 to 13 ms; the time is linear in
// the input.
func extract(in prompt.Input, counter tokens.Counter) string {
	limit := mostTokens(in)
	r := newReader(in, limit)
	r.readPrior(in.Prior)
	r.readFold(in.Fold)
	if !r.text {
		return ""
	}
	r.demoteSuperseded()
	r.favourAsked()
	p := newPicker(r, counter, limit)
	return p.pick()
}

// mostTokens is how many tokens a digest may have: the target, and half of
// what it folds besides the prior summary, because more would save little. Of
// little text half would say nothing, and a digest that isn't smaller than the
// text does no harm: it isn't used. Next to a prior summary the room is never
// less than a line or two, so that a merge with next to nothing loses nothing.
func mostTokens(in prompt.Input) int {
	const charactersPerToken, little, line = 4, 160, 48
	folded, characters := 0, 0
	for _, m := range in.Fold {
		folded += m.Tokens
		characters += len(m.Body)
	}
	if folded == 0 {
		folded = characters / charactersPerToken
	}
	prior := in.PriorTokens
	if prior == 0 {
		prior = len(in.Prior) / charactersPerToken
	}
	return min(max(in.TargetTokens, minTokens), max(prior+max(folded/2, line), little))
}

// A section is a heading of a digest.
type section int

const (
	sectionDecisions section = iota
	sectionFacts
	sectionDone
	sectionOpen
	sections // how many there are
)

// headings are English whatever the conversation's language: the models
// that read them know it, and a later digest finds them again.
var headings = [sections]string{"## Decisions and preferences", "## Facts", "## Done", "## Open or not confirmed"}

// An item is a sentence that may get into a digest.
type item struct {
	section section
	speaker string // who said it; "" where a prior summary doesn't say
	context string // what the sentence needs to be understood: the question that it answers, the heading above it, the call
	text    string // one line
	terms   []term
	marks   []string
	asked   []string // words that the instructions have, too
	class   int      // 3 for a correction, 2 for a decision, a ban or who somebody is, 1 for a wish, 0 else
	rule    bool     // the user said what is to hold
	worth   float64  // by which its terms count
	told    bool     // by a user, of himself
	stub    bool     // says nothing by itself
	leans   bool     // is understood only with the item before it
	message int      // counts messages, and lines of a prior summary
	order   int      // in the conversation
	prior   bool     // from the prior summary
	entry   bool     // of the prior summary's index
	fact    bool     // an entry that is no word
}

// piece is the item's text with its context.
func (it *item) piece() string {
	if it.context == "" {
		return it.text
	}
	return "[" + it.context + "] " + it.text
}
