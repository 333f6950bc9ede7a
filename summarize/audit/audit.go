// Package audit holds a summary against what it takes the place of: the messages
// that are folded, and the summary that is merged. It looks for facts and
// informative words, as package digest finds them, and understands no text. So it
// finds an answer that is no summary of these messages, and a merge that forgets;
// it doesn't find a sentence that says the wrong thing with the right words.
//
// The package calls no model and stores nothing.
package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A Finding is the outcome of an audit.
type Finding struct {
	prompt.Audit
	Missing []string // facts that the summary lacks, those of the prior summary first, 60 at most
	Problem error    // why the text is no summary of the input; nil for none
}

// Why a text is no summary of what it stands for.
var (
	errNothing  = errors.New("the answer says nothing of the messages")
	errForgets  = errors.New("the answer forgets the summary before")
	errRepeats  = errors.New("the answer only repeats the summary before")
	errForeign  = errors.New("the answer tells of something else")
	ErrLanguage = errors.New("the answer is in another language than the conversation")
)

// Floors, and the ceiling of what is foreign. Of 20 summaries by an able model, at
// about 10:1, the least had 0.145 of all, 0.037 of the messages, 0.36 of the summary
// before, and the most had 0.3 of foreign facts. Refusals, questions and replies to
// the same prompts had at most 0.033 of all.
const (
	leastAll    = 0.065
	leastFold   = 0.01
	leastPrior  = 0.2
	mostForeign = 0.75

	usualRatio   = 10 // the floors are for so many tokens to one, and lower in proportion where more is folded
	instructed   = 4  // instructions may leave out a lot: the floors are then so many times lower
	telling      = 40 // weight of a source that is enough to judge by
	tellingFacts = 8  // in a summary
	fewFacts     = 3  // in a summary that holds less than twice the floor
	factWeight   = 3
	mostMissing  = 60
)

// Of audits a summary of the input, after prompt.Clean.
func Of(in prompt.Input, summary string) (a Finding) {
	said, shown := textOf(in, in.Summarized())
	stay, shownToo := textOf(in, in.Fold)
	beside, shownBeside := textOf(in, slices.Concat(in.LookAhead, in.Kept))
	before, filled := prompt.CutFilled(in.Prior) // what was added to it, a model may leave out
	summarized, fold, prior, own := read(said+shown), read(said+shown+stay+shownToo), read(before), read(summary)
	seen := read(beside + shownBeside + filled + days(in)) // its facts are none of another matter
	var news, old share
	foreign, facts := 0, 0
	weighed := read(said)
	if len(weighed.terms) < telling {
		weighed = summarized
	}
	for text, t := range weighed.terms {
		if !prior.holds(text, t) {
			news.add(t, own.holds(text, t))
		}
	}
	for text, t := range prior.terms {
		if !fold.holds(text, t) {
			old.add(t, own.holds(text, t))
		}
	}
	for text, t := range own.terms {
		if t.fact {
			if facts++; !fold.holds(text, t) && !prior.holds(text, t) && !seen.holds(text, t) {
				foreign++
			}
		}
	}
	a.Fold, a.Prior, a.Foreign = news.ratio(), old.ratio(), float64(foreign)/float64(max(facts, 1))
	a.Missing = missing(own, prior, summarized)
	all, scale := share{news.held + old.held, news.of + old.of}, scaleOf(in)
	switch form := formOf(summary); {
	case form != nil:
		a.Problem = form
	case facts >= tellingFacts && a.Foreign > mostForeign,
		facts >= fewFacts && a.Foreign >= mostForeign && all.of >= telling && all.ratio() < 2*leastAll*scale:
		a.Problem = fmt.Errorf("%w: of %d names, numbers and other facts in it, %d stand nowhere in the messages", errForeign, facts, foreign)
	case all.of >= telling && all.ratio() < leastAll*scale:
		a.Problem = fmt.Errorf("%w: it holds %.1f %% of their facts and words", errNothing, 100*all.ratio())
	case old.of >= telling && a.Prior < leastPrior*scale:
		a.Problem = fmt.Errorf("%w: it holds %.0f %% of its facts and words", errForgets, 100*a.Prior)
	case in.Prior != "" && news.of >= telling && a.Fold < leastFold*scale:
		a.Problem = fmt.Errorf("%w: it holds %.1f %% of what the messages add", errRepeats, 100*a.Fold)
	case in.Instructions == "" && otherLanguage(in, summary):
		a.Problem = ErrLanguage
	}
	return a
}

// scaleOf is what the floors are multiplied by.
func scaleOf(in prompt.Input) float64 {
	scale := min(1, float64(usualRatio*in.TargetTokens)/float64(max(sourceTokens(in), 1)))
	if in.Instructions != "" {
		scale /= instructed
	}
	return scale
}

// sourceTokens counts what a summary takes the place of.
func sourceTokens(in prompt.Input) int {
	n := in.PriorTokens
	for _, m := range in.Fold {
		n += m.Tokens
	}
	return n
}

// A term is a fact or an informative word of a text.
type term struct {
	fact  bool
	times int
}

// A reading is a text with its terms.
type reading struct {
	lower string
	terms map[string]term
}

func read(text string) reading {
	r := reading{strings.ToLower(text), map[string]term{}}
	for text, fact := range digest.Terms(text) {
		t := r.terms[text]
		r.terms[text] = term{t.fact || fact, t.times + 1}
	}
	return r
}

// holds tells whether a text says a term. A fact may be a part of another: a file's
// name of its path.
func (r reading) holds(text string, t term) bool {
	return r.terms[text].times > 0 || t.fact && strings.Contains(r.lower, text)
}

// A share counts terms by their weight.
type share struct{ held, of float64 }

func (s *share) add(t term, held bool) {
	weight := 1.0
	if t.fact {
		weight = factWeight
	}
	if s.of += weight; held {
		s.held += weight
	}
}

func (s share) ratio() float64 {
	if s.of == 0 {
		return 1
	}
	return s.held / s.of
}

// missing returns facts of the sources that a summary doesn't hold, each source's
// most frequent first.
func missing(summary reading, sources ...reading) (texts []string) {
	for _, source := range sources {
		var lacks []string
		for text, t := range source.terms {
			if t.fact && !summary.holds(text, t) && !slices.Contains(texts, text) {
				lacks = append(lacks, text)
			}
		}
		slices.SortFunc(lacks, func(a, b string) int {
			return cmp.Or(source.terms[b].times-source.terms[a].times, strings.Compare(a, b))
		})
		texts = append(texts, lacks[:min(len(lacks), mostMissing/len(sources))]...)
	}
	return texts
}

// days names those on which the messages to summarize were written, and those around
// them: a summary gives a date where a message says "yesterday" or "last year".
func days(in prompt.Input) string {
	const around = 7
	var b strings.Builder
	last := ""
	for _, m := range slices.Concat(in.Leaving, in.Fold) {
		day := m.CreatedAt.UTC()
		if day.IsZero() || day.Format(time.DateOnly) == last {
			continue
		}
		last = day.Format(time.DateOnly)
		for n := -around; n <= around; n++ {
			b.WriteString(day.AddDate(0, 0, n).Format("on Monday 2 January 2006, 2006-01-02\n"))
		}
		fmt.Fprintf(&b, "%d %d\n", day.Year()-1, day.Year()+1)
	}
	return b.String()
}

// textOf is what a summarizer reads of messages: what people and models say, and what
// tools are given and show, and files. Of the latter a summary needs the least part.
func textOf(in prompt.Input, messages []tree.Message) (said, shown string) {
	const result, arguments, file = 2_000, 500, 8_000 // characters
	var say, show strings.Builder
	for _, m := range messages {
		read := in.Read(m)
		for _, f := range read.Files {
			show.WriteString(f.Name + "\n" + prompt.CutMiddle(f.Text, file) + "\n")
		}
		if m.Role == tree.RoleTool {
			show.WriteString(prompt.CutResult(read.Text, result) + "\n")
			continue
		}
		say.WriteString(read.Name + "\n" + read.Text + "\n" + read.Refusal + "\n")
		for _, call := range read.Calls {
			show.WriteString(call.Name + " " + prompt.CutMiddle(call.Arguments, arguments) + "\n")
		}
	}
	return say.String(), show.String()
}
