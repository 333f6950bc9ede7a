package digest

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

// A picker chooses among items within a number of tokens: again and again the
// one whose terms, as far as nothing chosen has them, count the most by the
// token.
type picker struct {
	*reader
	counter tokens.Counter
	limit   int

	left    int       // tokens
	fresh   float64   // the least share of what an item says that nothing chosen says yet
	weights []float64 // of terms
	covered []bool    // terms that something chosen has
	chosen  []int
	taken   []bool
	days    map[dayUnder]bool // that lines have
}

// A dayUnder is a day that stands once below one of the headings.
type dayUnder struct {
	day     string
	decides bool
}

// newPicker gives every term its weight: the more, the fewer items have it. Short
// words mostly say little. What was asked for says more, if not many items have it.
func newPicker(r *reader, counter tokens.Counter, limit int) *picker {
	terms := len(r.vocabulary)
	p := &picker{reader: r, counter: counter, limit: limit, taken: make([]bool, len(r.items)), days: map[dayUnder]bool{}, covered: make([]bool, terms), weights: make([]float64, terms)}
	items, last := make([]int, terms), make([]int, terms) // items that have a term, and the last of them
	for i, it := range p.items {
		for _, t := range it.terms {
			if last[t.id] != i+1 {
				last[t.id] = i + 1
				items[t.id]++
			}
			weight := kindWeights[t.kind]
			if t.kind == kindWord && t.short {
				weight /= 4
			}
			p.weights[t.id] = max(p.weights[t.id], weight)
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

// pick gives the digest. Lines of the prior summary and new ones have room of
// their own, by how many messages they stand for: neither can push the other
// out. So do what the user forbids, prefers, corrects and decides: such sentences are
// short and have few rare words.
func (p *picker) pick() string {
	const ruleShare = 65 // percent
	intro := p.counter.Count(p.intro())
	room := p.limit - intro
	if p.limit >= indexLeast {
		room = room * (100 - p.indexShare()) / 100
	}
	p.left = room
	share := room * p.priorShare() / 100
	for _, side := range []struct {
		prior  bool
		budget int
	}{{true, share}, {false, room - share}} {
		least := p.left - side.budget
		p.take(side.budget*ruleShare/100, func(it *item) bool { return it.prior == side.prior && it.rule })
		p.take(p.left-least, func(it *item) bool { return it.prior == side.prior })
	}
	for range 2 { // what is counted piece by piece leaves something over
		p.take(p.left, func(*item) bool { return true })
		p.left = room - p.counter.Count(p.text()) + intro
	}
	for {
		text := p.text()
		over := p.counter.Count(text) - p.limit
		if over <= 0 || len(p.chosen) == 0 {
			return text + p.index(text)
		}
		p.chosen = p.chosen[:max(len(p.chosen)-(over+3)/4, 0)]
	}
}

// priorShare is the percent of the room that lines of the prior summary have
// for themselves: what they stand for, of all that the digest stands for.
func (p *picker) priorShare() int {
	const least, most = 40, 75
	if p.in.Prior == "" {
		return 0
	}
	return min(max(100*(p.messages-len(p.in.Fold))/max(p.messages, 1), least), most)
}

// take chooses items as long as the budget lasts, the densest first: all above a level,
// then above the next one. An item only loses density while others are chosen, so one
// that is below a level needs no look before the levels come down to it.
func (p *picker) take(budget int, may func(*item) bool) {
	const step, last = 0.97, 1e-3 // of the highest level
	const misses = 8              // items in a row that may be too large before a choice ends
	const dayTokens = 8
	const label = 1 // about how many tokens of a line tell who speaks: most lines don't
	densities := make([]float64, len(p.items))
	for i := range p.items {
		if it := &p.items[i]; !p.taken[i] && !it.entry && may(it) {
			densities[i] = p.density(i)
		}
	}
	top := slices.Max(append(densities, 0))
	missed := 0
	for level := top * step; level > top*last; level *= step {
		for i := range densities {
			if densities[i] >= level {
				densities[i] = p.density(i)
			}
			if densities[i] < level {
				continue
			}
			densities[i] = 0
			it := &p.items[i]
			cost := p.counter.Count("\n  "+it.piece()) + label
			day := dayUnder{it.day, it.decides}
			if it.day != "" && !p.days[day] {
				cost += dayTokens
			}
			if cost > min(p.left, budget) {
				if missed++; missed == misses {
					return
				}
				continue
			}
			missed = 0
			budget -= cost
			p.left -= cost
			p.taken[i], p.days[day] = true, true
			p.chosen = append(p.chosen, i)
			for _, t := range p.items[i].terms {
				p.covered[t.id] = true
			}
		}
	}
}

// density is what an item says by the token, as far as nothing chosen says it.
// It is 0 for an item that only repeats.
func (p *picker) density(i int) float64 {
	const repeated = 0.25 // what a term counts that something chosen has
	const bytesPerToken, line = 4, 3
	it := &p.items[i]
	fresh, all := 0.0, 0.0
	for _, t := range it.terms {
		w := p.weights[t.id]
		all += w
		if !p.covered[t.id] {
			fresh += w
		}
	}
	if fresh == 0 && !it.prior && len(p.chosen) > 0 || fresh < p.fresh*all {
		return 0
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
	return strings.TrimSuffix(p.intro()+strings.Join(lines, "\n"), "\n")
}

// lines are those of the chosen items that may be in it, in the conversation's order. A
// line has what was chosen of one message. It names its speaker and its day, unless they
// are those of the line before.
func (p *picker) lines(may func(*item) bool) (lines []string) {
	last, day := -1, ""
	for _, i := range slices.Sorted(slices.Values(p.chosen)) {
		it := &p.items[i]
		if !may(it) {
			continue
		}
		piece := it.piece()
		if it.day != "" && it.day != day {
			day = it.day
			piece = it.pieceOn(day)
		}
		line := "- " + piece
		if it.speaker != "" {
			line = "- " + it.speaker + ": " + piece
		}
		if last >= 0 && p.items[last].speaker == it.speaker && it.speaker != "" {
			line = "  " + piece
			gap := " "
			if last < i-1 {
				gap = ellipsis
			}
			if end := len(lines) - 1; p.items[last].message == it.message && utf8.RuneCountInString(lines[end]+gap+piece) <= p.length {
				line = lines[end] + gap + piece
				lines = lines[:end]
			}
		}
		lines = append(lines, strings.TrimRight(prompt.Line(line), " "))
		last = i
	}
	return lines
}
