// Package digest is the offline summarizer, the summarizer of last resort: it
// needs no model and no network. It takes sentences out of the messages and
// writes none of its own, so it can't invent, and cannot condense either. What
// it does is choose: what users decided, preferred and corrected first, then
// what holds names, numbers, addresses and paths, then the rest, as far as the
// target goes.
//
// It works in steps: messages and the prior summary become items (read.go,
// prior.go), items get a section and a score (score.go), and the best of them
// are laid out under headings (pick.go). It takes no clock, no randomness and no
// map's order: equal input gives equal output.
package digest

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// Name is the name of this summarizer in records, where others have a model's.
const Name = "offline-digest"

// A Summarizer makes digests. The zero value counts by o200k.
type Summarizer struct {
	Counter tokens.Counter
}

// Summarize gives the digest of all messages to fold. There is none only where
// nothing of the input holds any text.
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
// 100,000 tokens of input take some 30 ms; the time is linear in the input.
func extract(in prompt.Input, counter tokens.Counter) string {
	r := newReader(in)
	r.readPrior(in.Prior)
	r.readFold(in.Fold)
	if !r.text {
		return ""
	}
	r.demoteSuperseded()
	r.favourAsked()
	p := picker{counter: counter, intro: r.intro(), items: r.items}
	return p.pick(mostTokens(in, r.characters))
}

// mostTokens is how many tokens a digest may have: the target, and half of
// what it folds besides the prior summary, because more would save little. Of
// little text half would say nothing, and a digest that isn't smaller than the
// text does no harm: it isn't used. Next to a prior summary the room is never
// less than a line or two, so that a merge with next to nothing loses nothing.
func mostTokens(in prompt.Input, characters int) int {
	const charactersPerToken, little, line = 4, 160, 48
	folded := 0
	for _, m := range in.Fold {
		folded += m.Tokens
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
	text    string // one line
	marks   []string
	asked   []string // words that the instructions have, too
	class   int      // 3 for a correction, 2 for a decision or who somebody is, 1 for a wish, 0 else
	score   int
	order   int  // in the conversation
	prior   bool // from the prior summary
}

// line is the item as the digest shows it.
func (it item) line() string {
	if it.speaker == "" {
		return "- " + it.text + "\n"
	}
	return "- " + it.speaker + ": " + it.text + "\n"
}
