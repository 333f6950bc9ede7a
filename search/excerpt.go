package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// An excerpt has so many bytes at most, and so many before the first word that
// was sought.
const (
	excerptBytes  = 400
	excerptBefore = 80
)

// A foundTerm is where in a text something begins that is sought.
type foundTerm struct {
	at   int
	term term
}

// found returns where the terms that a question seeks stand in a text.
func (s *stemmer) found(text string, sought map[term]bool) (places []foundTerm) {
	words := wordsOf(text)
	language := languageOf(words)
	for _, w := range words {
		if t, ok := s.termIn(w, language); ok && sought[t] {
			places = append(places, foundTerm{w.from, t})
		}
	}
	return places
}

// found returns where the terms of a query stand in a text.
func (q query) found(s said) (places []foundTerm) {
	for n, t := range q.terms {
		for _, i := range (&clause{words: []*wanted{t}, beginning: q.goesOn(t)}).places(s) {
			places = append(places, foundTerm{s.words[i].from, term(n)})
		}
	}
	slices.SortFunc(places, func(a, b foundTerm) int { return cmp.Compare(a.at, b.at) })
	return places
}

// excerpt cuts a text at the first of the places, which are in order, where most of the
// different terms stand together; its beginning where there is none.
func excerpt(text string, places []foundTerm) string {
	at, most := 0, 0
	seen := map[term]int{}
	end := 0
	for i, p := range places {
		for ; end < len(places) && places[end].at < p.at+excerptBytes-2*excerptBefore; end++ {
			seen[places[end].term]++
		}
		if len(seen) > most {
			at, most = p.at, len(seen)
		}
		if seen[places[i].term]--; seen[places[i].term] == 0 {
			delete(seen, places[i].term)
		}
	}
	return cut(text, at)
}

// cut gives the part of a text around a place, from the beginning of a word to
// the end of one where words are short enough.
func cut(text string, at int) string {
	from := max(0, at-excerptBefore)
	if from > 0 {
		if space := strings.LastIndexAny(text[from:at], ".!?。！？\n"); space >= 0 {
			from += space + 1
		} else if space := strings.IndexByte(text[from:at], ' '); space >= 0 {
			from += space + 1
		}
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	text = text[from:]
	if len(text) > excerptBytes {
		to := excerptBytes
		for !utf8.RuneStart(text[to]) {
			to--
		}
		if space := strings.LastIndexByte(text[:to], ' '); space > excerptBytes/2 {
			to = space
		}
		text = text[:to]
	}
	return strings.TrimSpace(text)
}
