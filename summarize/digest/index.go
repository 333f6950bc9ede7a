package digest

import (
	"cmp"
	"slices"
	"strings"
)

// An index names what else was mentioned, for a model to look up.
const (
	indexHeading = "## Also mentioned"
	indexLine    = "Recall finds the messages about: "
	indexWords   = "Recall finds words, too: "
	indexGap     = ", " // beside names and numbers of several words
)

// indexShare is the part of a digest that its index may have, in percent, and
// indexLeast how many tokens a digest with an index has at least.
const (
	indexShare = 14
	indexLeast = 150
)

// enoughItems is how many items an index of words needs: of fewer it can't be told
// which words are rare.
const enoughItems = 100

// readIndex reads a line of the index of a prior digest: facts, or words. Older
// digests have both in one line.
func (r *reader) readIndex(index string, facts bool) {
	const longest = 4 // words of a name; more are single ones
	for text := range strings.SplitSeq(index, indexGap) {
		parts := strings.Fields(text)
		if facts && len(parts) <= longest {
			parts = []string{strings.Join(parts, " ")}
		}
		for _, part := range parts {
			r.order++
			r.items = append(r.items, item{
				text: part, entry: true, worth: roleWorth(""), order: r.order, prior: true, terms: r.vocabulary.termsOf(part, false),
			})
			it := &r.items[len(r.items)-1]
			it.fact = facts && slices.ContainsFunc(it.terms, func(t term) bool { return t.kind.isFact() })
		}
	}
}

// An entry of the index is a part of an item.
type entry struct {
	item       int
	start, end int32
	fact       bool    // and no word
	phrase     bool    // of several words
	cost       int     // in tokens
	value      float64 // by the token
}

// index gives the index of a digest: names, numbers and words that nothing
// chosen has, those first that count the most by the token, in the
// conversation's order.
func (p *picker) index(text string) string {
	head := "\n\n" + indexHeading + "\n"
	size := p.counter.Count(text)
	lines := head + indexLine
	if len(p.items) >= enoughItems {
		lines += indexWords
	}
	room := min(p.limit-size, p.limit*indexShare/100) - p.counter.Count(lines)
	if p.limit < indexLeast || room <= 0 {
		return ""
	}
	chosen := p.chooseEntries(room)
	for len(chosen) > 0 {
		index := head + p.layOutIndex(chosen)
		over := p.counter.Count(text+index) - p.limit
		if over <= 0 {
			return index
		}
		chosen = chosen[:max(len(chosen)-(over+1)/2, 0)]
	}
	return ""
}

// chooseEntries gives the best entries for so many tokens, the best first.
func (p *picker) chooseEntries(room int) (chosen []entry) {
	for _, i := range p.chosen {
		_, name, _ := strings.Cut(p.items[i].speaker, " ")
		if id := p.vocabulary.id(name); int(id) < len(p.covered) {
			p.covered[id] = true // the lines say it
		}
	}
	var all []entry
	costs := make([]int, len(p.vocabulary))
	for i := range p.items {
		if !p.taken[i] {
			all = p.entries(all, i, costs)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(b.value, a.value) })
	for _, e := range all {
		it := &p.items[e.item]
		if p.news(it.terms, e) <= 0 {
			continue
		}
		cost := e.cost
		if e.phrase {
			cost++ // what stands between
		}
		if cost > room {
			break
		}
		room -= cost
		for _, t := range it.terms {
			if t.start >= e.start && t.end <= e.end {
				p.covered[t.id] = true
			}
		}
		chosen = append(chosen, e)
	}
	return chosen
}

// entries adds what of an item may get into the index: the longest facts, and
// words that stand in none. costs has the tokens of terms that were counted.
func (p *picker) entries(all []entry, i int, costs []int) []entry {
	const least, long = 4, 6 // bytes of a word; greetings have short ones
	factValue := 1.05
	if !p.assisted { // people tell more names than words, and short messages have them
		factValue = 2.5
	}
	few := len(p.items) < enoughItems
	it := &p.items[i]
	piece := it.piece()
	add := func(e entry, fact bool) {
		if news := p.news(it.terms, e); news > 0 {
			e.value = it.worth * news / float64(e.cost+1)
			if fact {
				e.value *= factValue
			}
			all = append(all, e)
		}
	}
	if it.entry {
		add(entry{item: i, end: int32(len(piece)), fact: it.fact, phrase: strings.Contains(piece, " "), cost: p.counter.Count(" " + piece)}, it.fact)
		return all
	}
	for n, t := range it.terms {
		word := piece[t.start:t.end]
		isWord := t.kind == kindWord || few && t.kind == kindName && (p.small[t.id] > 0 || cues.find(lowerText(word))&(cueConfirm|cueCorrection|cueAsks) != 0) // "Yes" is no name
		if p.covered[t.id] || t.kind == kindPair || isWord && (few || len(word) < least || t.short || it.stub && len(word) < long || strings.Contains(word, "'")) ||
			strings.Contains(word, ";") || isWithin(it.terms, n) {
			continue
		}
		if costs[t.id] == 0 {
			costs[t.id] = p.counter.Count(" " + word)
		}
		if end := unitEnd(piece, it.terms[n:]); end > 0 && p.assisted { // people have other names in this room
			add(entry{item: i, start: t.start, end: end, fact: true, phrase: true, cost: p.counter.Count(" " + piece[t.start:end])}, true)
			continue
		}
		add(entry{item: i, start: t.start, end: t.end, fact: t.kind.isFact() && !isWord, phrase: strings.Contains(word, " "), cost: costs[t.id]}, t.kind.isFact())
	}
	return all
}

// unitEnd is where the word ends by which a small number says what it counts; 0 for
// none.
func unitEnd(piece string, terms []term) int32 {
	const most = 2 // digits
	if number := terms[0]; number.kind == kindNumber && number.end-number.start <= most && len(terms) > 1 {
		if unit := terms[1]; unit.kind == kindWord && !unit.short && unit.start == number.end+1 && piece[number.end] == ' ' {
			return unit.end
		}
	}
	return 0
}

// isWithin tells whether the n-th term is a part of a longer fact. Terms stand
// in the order of their ends, but for quoted strings, which come last.
func isWithin(terms []term, n int) bool {
	t := terms[n]
	for _, other := range terms[max(0, n-8):] {
		if other.kind.isFact() && other.start <= t.start && other.end >= t.end && other.end-other.start > t.end-t.start {
			return true
		}
	}
	return false
}

// news is what an entry has that nothing chosen has.
func (p *picker) news(terms []term, e entry) (sum float64) {
	for _, t := range terms {
		if t.start >= e.start && t.end <= e.end && !p.covered[t.id] {
			sum += p.weights[t.id]
		}
	}
	return sum
}

func (p *picker) layOutIndex(chosen []entry) string {
	chosen = slices.Clone(chosen)
	slices.SortFunc(chosen, func(a, b entry) int { return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.start, b.start)) })
	var b, words strings.Builder
	phrase := false // stands before
	for _, e := range chosen {
		into, gap := &b, " "
		switch {
		case !e.fact:
			into = &words
		case phrase || e.phrase:
			gap = indexGap
		}
		phrase = e.fact && e.phrase || !e.fact && phrase
		if into.Len() > 0 {
			into.WriteString(gap)
		}
		into.WriteString(p.items[e.item].piece()[e.start:e.end])
	}
	switch {
	case words.Len() == 0:
		return withoutTags(indexLine + b.String())
	case b.Len() == 0:
		return withoutTags(indexWords + words.String())
	}
	return withoutTags(indexLine + b.String() + "\n" + indexWords + words.String())
}
