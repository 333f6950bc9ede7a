// Package digest is the offline summarizer, the last resort: it needs no model
// and no network. It takes sentences out of the messages and writes none of its
// own. So it can't invent, and it can't condense. It chooses: again and again
// it takes the sentence that says the most, by the token, of what no chosen
// sentence says yet.
//
// It works in steps. Messages and the prior summary become items, each with the
// informative words and the facts that it holds (read.go, prior.go, term.go), and
// with a worth. The best of them are chosen and laid out under headings
// (pick.go), before an index of what else was mentioned (index.go). It uses no
// clock, no randomness and no map's order, so equal input gives equal output.
package digest

import (
	"context"
	"slices"
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

// extract summarizes without a model. The result has at most in.TargetTokens (or 32, for
// its first line), and fewer where that wouldn't be smaller than what it stands for. It is
// "" only where neither the messages nor the prior summary hold any text; otherwise it
// passes prompt.Clean. The look-ahead and the instructions say what matters, and none of
// their text gets into the result. The time is linear in the input.
func extract(in prompt.Input, counter tokens.Counter) string {
	limit := mostTokens(in)
	r := newReader(in, counter, limit)
	r.readPrior(in.Prior)
	r.readFold(slices.Concat(in.Leaving, in.Fold))
	if !r.text {
		return ""
	}
	return newPicker(r, limit).pick()
}

// mostTokens is how many tokens a digest may have: the target, and half of
// what it folds besides the prior summary, because more would save little. Of
// little text half would say nothing, and a digest that isn't smaller than the
// text does no harm: it isn't used. Next to a prior summary the room is never
// less than a line or two, so that a merge with next to nothing loses nothing.
func mostTokens(in prompt.Input) int {
	const least, little, line = 32, 160, 48
	folded := 0
	for _, m := range in.Fold {
		folded += m.Tokens
	}
	return min(max(in.TargetTokens, least), max(in.PriorTokens+max(folded/2, line), little))
}

// intro is the first line. It is long enough that with it every digest is a summary by
// its length.
const intro = "Extract of earlier messages, made without a language model.\n"

// The headings are English whatever the conversation's language: the models
// that read them know it, and a later digest finds them again.
const (
	headingDecisions = "## Decisions and preferences"
	headingFacts     = "## Facts"
)

// An item is a sentence that may get into a digest, or an entry of the prior
// digest's index.
type item struct {
	source
	text    string // one line
	terms   []term // of the piece
	worth   float64
	rule    bool // the user said what is to hold
	message int  // counts messages, and lines of a prior summary
	entry   bool // of an index
	code    bool // within a code fence, or a call
	taken   bool // chosen, or an entry of the prior digest, which stands for its words alone
	size    int  // in tokens of a digest
}

// piece is the item's text with its context.
func (it *item) piece() string {
	if it.context == "" {
		return it.text
	}
	return "[" + it.context + "] " + it.text
}
