package digest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/summarize/prompt"
)

// An index names what else was mentioned, for a model to look up.
const (
	indexHeading = "## Also mentioned"
	indexLine    = "Recall finds the messages about:"
	indexLeast   = 150 // tokens of a digest with an index
	indexShare   = 12  // percent of a digest that its index may have
)

// What a number counts, in a script without spaces: two characters before and after it.
var (
	countedBefore = regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]{0,2}$`)
	countedAfter  = regexp.MustCompile(`^[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]{0,2}`)
)

// addEntries chooses for the index of a digest: names, numbers and words that nothing
// chosen has, those first that count the most by the token.
func (p *picker) addEntries(text string) {
	// People tell more names than words, and short messages have them.
	factValue := map[bool]float64{true: 1.05, false: 2.5}[p.assisted]
	const least = 4 // bytes of a word
	room := min(p.limit-p.counter.Count(text), p.limit*indexShare/100) - p.counter.Count("\n\n"+indexHeading+"\n"+indexLine)
	if p.limit < indexLeast || room <= 0 {
		return
	}
	at := make([]int, len(p.covered)) // the entry of a term
	for _, it := range p.items {
		for _, t := range it.terms {
			piece := it.piece()
			word := piece[t.start:t.end]
			if p.covered[t.id] || t.kind <= kindPair && (t.kind != kindWord || len(word) < least || strings.Contains(word, "'")) || strings.ContainsAny(word, `;,"`) {
				continue
			}
			e := item{entry: true, worth: it.worth}
			if t.kind.isFact() {
				e.worth *= factValue
			}
			if known := at[t.id]; known > 0 {
				p.items[known].worth = max(p.items[known].worth, e.worth)
				continue
			}
			if t.kind == kindNumber {
				t.start -= int32(len(countedBefore.FindString(piece[:t.start])))
				t.end += int32(len(countedAfter.FindString(piece[t.end:])))
			}
			e.text = piece[t.start:t.end]
			for _, part := range it.terms {
				if part.start >= t.start && part.end <= t.end {
					e.terms = append(e.terms, part)
				}
			}
			if strings.Contains(e.text, " ") {
				e.text = `"` + e.text + `"`
			}
			e.size = p.counter.Count(" " + e.text)
			at[t.id] = len(p.items)
			p.items = append(p.items, e)
		}
	}
	p.left = room
	p.take(room, func(it *item) bool { return it.entry })
}

// index writes the entries that are chosen. One of several words stands in quotes.
func (p *picker) index() (index string) {
	for _, i := range slices.Sorted(slices.Values(p.chosen)) {
		if it := &p.items[i]; it.entry {
			index += " " + it.text
		}
	}
	if index == "" {
		return ""
	}
	return "\n\n" + indexHeading + "\n" + strings.TrimRight(prompt.Line(indexLine+index), " ") // a mark that prompt.Line takes away leaves a space
}

// indexEntry matches an entry of an index.
var indexEntry = regexp.MustCompile(`"[^"]+"|\S+`)

// readIndex reads the line of the index of a prior digest.
func (r *reader) readIndex(line string) {
	for _, text := range indexEntry.FindAllString(line, -1) {
		r.items = append(r.items, item{text: text, entry: true, taken: true, worth: roleWorth[""], terms: r.vocabulary.terms(text, false)})
	}
}
