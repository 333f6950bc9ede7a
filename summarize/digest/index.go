package digest

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/summarize/prompt"
)

// An index names what else was mentioned, for a model to look up.
const (
	indexHeading = "## Also mentioned"
	indexFacts   = "Recall finds the messages about:"
	indexWords   = "Recall finds words, too:"
)

// indexLeast is how many tokens a digest with an index has at least.
const indexLeast = 150

// indexShare is the part of a digest that its index may have, in percent. What people
// tell each other stands in sentences rather than in names.
func (r *reader) indexShare() int {
	if r.assisted {
		return 14
	}
	return 10
}

// An entry of the index is a part of an item.
type entry struct {
	item       int
	start, end int32
	fact       bool    // and no word
	cost       int     // in tokens
	value      float64 // by the token
}

// index gives the index of a digest: names, numbers and words that nothing
// chosen has, those first that count the most by the token, in the
// conversation's order.
func (p *picker) index(text string) string {
	head := "\n\n" + indexHeading + "\n"
	room := min(p.limit-p.counter.Count(text), p.limit*p.indexShare()/100) - p.counter.Count(head+indexFacts+indexWords)
	if p.limit < indexLeast || room <= 0 {
		return ""
	}
	for chosen := p.chooseEntries(room); len(chosen) > 0; {
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
		for name := range strings.FieldsFuncSeq(p.items[i].speaker, func(r rune) bool { return r == ' ' || r == '_' }) {
			if id := p.vocabulary.id(name); int(id) < len(p.covered) {
				p.covered[id] = true // the lines say it
			}
		}
	}
	all := p.entries()
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(b.value, a.value) })
	for _, e := range all {
		if p.news(e) == 0 {
			continue
		}
		if room -= e.cost; room < 0 {
			break
		}
		for _, t := range p.items[e.item].terms {
			p.covered[t.id] = p.covered[t.id] || t.start >= e.start && t.end <= e.end
		}
		chosen = append(chosen, e)
	}
	return chosen
}

// entries gives what may get into the index: facts and longer words of items that
// weren't chosen.
func (p *picker) entries() (all []entry) {
	const least = 4 // bytes of a word
	factValue := 1.05
	if !p.assisted { // people tell more names than words, and short messages have them
		factValue = 2.5
	}
	costs := map[string]int{} // in tokens
	for i, it := range p.items {
		piece := it.piece()
		for _, t := range it.terms {
			word := piece[t.start:t.end]
			if p.taken[i] || p.covered[t.id] || t.kind == kindPair || t.kind == kindWord && (len(word) < least || t.short || strings.Contains(word, "'")) || strings.ContainsAny(word, ";,") {
				continue
			}
			e := entry{item: i, start: t.start, end: t.end, fact: t.kind.isFact()}
			if t.kind == kindNumber {
				e.start, e.end = counted(piece, t)
			}
			text := p.entryText(e)
			if costs[text] == 0 {
				costs[text] = p.counter.Count(" "+text) + strings.Count(text, " ") // and a comma
			}
			e.cost = costs[text]
			if e.value = it.worth * p.news(e) / float64(e.cost+1); e.fact {
				e.value *= factValue
			}
			if e.value > 0 {
				all = append(all, e)
			}
		}
	}
	return all
}

// counted gives the bounds of a number with what it counts, where the script has no
// spaces: two characters before and after it.
func counted(piece string, t term) (start, end int32) {
	start, end = t.start, t.end
	for range 2 {
		if r, size := utf8.DecodeLastRuneInString(piece[:start]); scriptOf(r) == scriptNoSpaces {
			start -= int32(size)
		}
		if r, size := utf8.DecodeRuneInString(piece[end:]); scriptOf(r) == scriptNoSpaces {
			end += int32(size)
		}
	}
	return start, end
}

func (p *picker) entryText(e entry) string { return p.items[e.item].piece()[e.start:e.end] }

// news is what an entry has that nothing chosen has.
func (p *picker) news(e entry) (sum float64) {
	for _, t := range p.items[e.item].terms {
		if t.start >= e.start && t.end <= e.end && !p.covered[t.id] {
			sum += p.weights[t.id]
		}
	}
	return sum
}

// layOutIndex writes facts in one line and words in another. A comma parts a fact of
// several words from those beside it.
func (p *picker) layOutIndex(chosen []entry) string {
	inOrder := func(a, b entry) int { return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.start, b.start)) }
	facts, words := "", ""
	long := false // the fact before has several words
	for _, e := range slices.SortedFunc(slices.Values(chosen), inOrder) {
		text := p.entryText(e)
		if !e.fact {
			words += " " + text
			continue
		}
		if isLong := strings.Contains(text, " "); facts != "" && (long || isLong) {
			facts += ","
		}
		long = strings.Contains(text, " ")
		facts += " " + text
	}
	var lines []string
	if facts != "" {
		lines = append(lines, prompt.Line(indexFacts+facts))
	}
	if words != "" {
		lines = append(lines, prompt.Line(indexWords+words))
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) // a mark that prompt.Line takes away leaves a space
}
