package digest

import (
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// Fill returns sentences of the messages and of the prior summary for what a summary
// of both lacks, those with a fact or a decision first: a list of lines, in the
// conversation's order, in at most limit tokens.
// It is "" where nothing is missing that fits. A sentence is not taken of which the
// summary says more than half.
func Fill(in prompt.Input, summary string, limit int, counter tokens.Counter) string {
	const fresh = 0.4
	r := newReader(in, limit)
	r.readPrior(in.Prior)
	r.readFold(in.Fold)
	p := newPicker(r, counter, limit)
	p.fresh = fresh
	p.cover(summary)
	p.left = limit
	p.take(limit, p.lacks)
	p.take(p.left, func(*item) bool { return true })
	for len(p.chosen) > 0 {
		text := strings.Join(p.lines(func(*item) bool { return true }), "\n")
		over := counter.Count(text) - limit
		if over <= 0 {
			return text
		}
		p.chosen = p.chosen[:max(len(p.chosen)-(over+3)/4, 0)]
	}
	return ""
}

// lacks tells an item with a fact that nothing covers, or with what the user decided.
func (p *picker) lacks(it *item) bool {
	return it.rule || slices.ContainsFunc(it.terms, func(t term) bool { return t.kind.isFact() && !p.covered[t.id] })
}

// cover marks the terms that a summary has. A fact may stand in it as a part of
// another. What is missing is facts above all: a model rather condenses words.
func (p *picker) cover(summary string) {
	for text := range Terms(summary) {
		if id, known := p.vocabulary[text]; known {
			p.covered[id] = true
		}
	}
	const factWeight = 3
	lower := strings.ToLower(summary)
	looked := make([]bool, len(p.covered))
	for _, it := range p.items {
		piece := it.piece()
		for _, t := range it.terms {
			if !t.kind.isFact() || p.covered[t.id] || looked[t.id] {
				continue
			}
			looked[t.id] = true
			p.weights[t.id] *= factWeight
			p.covered[t.id] = strings.Contains(lower, strings.ToLower(piece[t.start:t.end]))
		}
	}
}
