package digest

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A picker chooses among items within a number of tokens: again and again the
// one whose terms, as far as nothing chosen has them, count the most by the
// token.
type picker struct {
	*reader
	limit   int
	left    int       // tokens
	fills   bool      // only sentences that people and models say, and of which nothing chosen says most
	weights []float64 // of terms
	facts   []bool    // terms that are facts
	covered []bool    // terms that something chosen has
	chosen  []int
}

// newPicker gives every term its weight: the more, the fewer items have it. Short
// words mostly say little. What was asked for says more, if not many items have it.
func newPicker(r *reader, limit int) *picker {
	terms := len(r.vocabulary)
	p := &picker{reader: r, limit: limit, covered: make([]bool, terms), facts: make([]bool, terms), weights: make([]float64, terms)}
	items, last := make([]int, terms), make([]int, terms) // items that have a term, and the last of them
	for i, it := range p.items {
		for _, t := range it.terms {
			if last[t.id] != i+1 {
				last[t.id] = i + 1
				items[t.id]++
			}
			p.weights[t.id] = max(p.weights[t.id], kindWeights[t.kind])
			p.facts[t.id] = p.facts[t.id] || t.kind.isFact()
		}
	}
	for id, n := range items {
		p.weights[id] *= math.Log(float64(len(p.items)+1) / float64(max(n, 1)))
		if p.asked[int32(id)] && n <= max(3, len(p.items)/10) {
			p.weights[id] *= 5
		}
	}
	return p
}

// pick gives the digest. Lines of the prior summary and new ones have room of their own:
// neither can push the other out. So do what the user forbids, prefers, corrects and
// decides: such sentences are short and have few rare words.
func (p *picker) pick() string {
	const ruleShare, priorShare = 65, 60 // percent
	first := p.counter.Count(intro)
	room := p.limit - first
	if p.limit >= indexLeast {
		room = room * (100 - indexShare) / 100
	}
	p.left = room
	half := func(prior bool, rest int) {
		p.take((p.left-rest)*ruleShare/100, func(it *item) bool { return it.prior == prior && it.rule })
		p.take(p.left-rest, func(it *item) bool { return it.prior == prior })
	}
	half(true, room*(100-priorShare)/100)
	half(false, 0)
	for range 2 { // what is counted piece by piece leaves something over
		p.take(p.left, func(*item) bool { return true })
		p.left = room - p.counter.Count(p.text()) + first
	}
	p.addEntries(p.fit(p.text))
	return p.fit(func() string { return p.text() + p.index() })
}

// fit gives a text of what is chosen, without what was chosen last where that is too much.
func (p *picker) fit(write func() string) string {
	for {
		text := write()
		over := p.counter.Count(text) - p.limit
		if over <= 0 || len(p.chosen) == 0 {
			return text
		}
		p.chosen = p.chosen[:max(len(p.chosen)-(over+3)/4, 0)]
	}
}

// take chooses items as long as the budget lasts, the densest first: all above a level,
// then above the next one. An item only loses density while others are chosen, so one
// that is below a level needs no look before the levels come down to it.
func (p *picker) take(budget int, may func(*item) bool) {
	const step, last, misses = 0.97, 1e-3, 8 // of the highest level; items in a row that may be too large before a choice ends
	densities := make([]float64, len(p.items))
	for i := range p.items {
		if it := &p.items[i]; !it.taken && may(it) {
			densities[i] = p.density(it)
		}
	}
	top, missed := slices.Max(append(densities, 0)), 0
	for level := top * step; level > top*last; level *= step {
		for i := range densities {
			it := &p.items[i]
			if densities[i] >= level {
				densities[i] = p.density(it)
			}
			if densities[i] < level {
				continue
			}
			if densities[i] = 0; it.size > min(p.left, budget) {
				if missed++; missed == misses {
					return
				}
				continue
			}
			missed = 0
			budget, p.left = budget-it.size, p.left-it.size
			p.chosen = append(p.chosen, i)
			it.taken = true
			for _, t := range it.terms {
				p.covered[t.id] = true
			}
		}
	}
}

// density is what an item says by the token, as far as nothing chosen says it.
// It is 0 for an item that only repeats.
func (p *picker) density(it *item) float64 {
	const repeated, bytesPerToken, line = 0.25, 4, 3 // what a term of a sentence counts that something chosen has
	const fillShare = 0.4                            // the least share of what an added sentence says that nothing chosen says yet
	fresh, all := 0.0, 0.0
	for _, t := range it.terms {
		w := p.weights[t.id]
		all += w
		if !p.covered[t.id] {
			fresh += w
		}
	}
	if fresh == 0 && !it.prior && len(p.chosen) > 0 || p.fills && (it.code || it.role == tree.RoleTool || fresh < fillShare*all) {
		return 0
	}
	if it.entry {
		return it.worth * fresh / float64(it.size+1)
	}
	return it.worth * (fresh + repeated*(all-fresh) + 0.01) / (float64(len(it.text)+len(it.context))/bytesPerToken + line)
}

// text is the digest without its index: the chosen items under their headings.
func (p *picker) text() string {
	var lines []string
	for _, heading := range []string{headingDecisions, headingFacts} {
		if under := p.lines(func(it *item) bool { return it.decides == (heading == headingDecisions) }); len(under) > 0 {
			lines = append(append(lines, "", heading), under...)
		}
	}
	return strings.TrimSuffix(intro+strings.Join(lines, "\n"), "\n")
}

// lines are those of the chosen items that may be in it, in the conversation's order. A
// line has what was chosen of one message. It names its speaker and its day, unless they
// are those of the line before.
func (p *picker) lines(may func(*item) bool) (lines []string) {
	last, day := -1, ""
	for _, i := range slices.Sorted(slices.Values(p.chosen)) {
		it := &p.items[i]
		if it.entry || !may(it) {
			continue
		}
		piece := it.piece()
		if it.day != "" && it.day != day {
			day = it.day
			piece = "[" + day + "] " + piece
		}
		line := "- " + piece
		if it.speaker != "" {
			line = "- " + it.speaker + ": " + piece
		}
		if last >= 0 && p.items[last].speaker == it.speaker && it.speaker != "" {
			line = "  " + piece
			end := len(lines) - 1
			if joined := lines[end] + " " + piece; p.items[last].message == it.message && utf8.RuneCountInString(joined) <= p.length {
				line, lines = joined, lines[:end]
			}
		}
		lines = append(lines, strings.TrimRight(prompt.Line(line), " "))
		last = i
	}
	return lines
}

// Fill returns sentences of the messages and of the prior summary for what a summary of
// both lacks, of its facts above all: a list of lines, in the conversation's order, in at
// most limit tokens; "" where nothing is missing that fits. A sentence is not taken of
// which the summary says more than half, nor code, a call or a tool's result.
func Fill(in prompt.Input, summary string, limit int, counter tokens.Counter) string {
	r := newReader(in, counter, limit)
	r.readPrior(in.Prior)
	r.readFold(in.Fold)
	p := newPicker(r, limit)
	p.fills, p.left = true, limit
	p.cover(summary)
	p.take(limit, func(*item) bool { return true })
	return p.fit(func() string { return strings.Join(p.lines(func(*item) bool { return true }), "\n") })
}

// cover marks the terms that a summary has. A fact may stand in it as a part of
// another. What is missing is facts above all: a model rather condenses words.
func (p *picker) cover(summary string) {
	for text := range Terms(summary) {
		if id, known := p.vocabulary[text]; known {
			p.covered[id] = true
		}
	}
	const factWeight = 6
	lower := strings.ToLower(summary)
	for text, id := range p.vocabulary {
		if p.facts[id] && !p.covered[id] {
			p.weights[id] *= factWeight
			p.covered[id] = strings.Contains(lower, text)
		}
	}
}
