package search

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A snippet has so many words and bytes at most, and of both so many before the
// first word that was looked for.
const (
	snippetWords, wordsBefore = 32, 8
	snippetBytes, bytesBefore = 400, 100
)

// mostHits is how many places of a text a snippet is chosen among.
const mostHits = 1000

// snippet cuts a text around the first of the places where most of the words that are
// sought stand together.
func snippet(text string, s said, q query) string {
	found := q.found(s)
	at, most := 0, 0
	for i, p := range found {
		seen := make(map[*wanted]bool, len(q.terms))
		for _, near := range found[i:] {
			if near.at > p.at+snippetBytes-bytesBefore {
				break
			}
			seen[near.term] = true
		}
		if len(seen) > most {
			at, most = p.at, len(seen)
		}
		if most == len(q.terms) {
			break
		}
	}
	return cutWords(text, at)
}

// A foundTerm is where in a text one of the words begins.
type foundTerm struct {
	at   int
	term *wanted
}

func (q query) found(s said) (found []foundTerm) {
	for _, t := range q.terms {
		for _, i := range (&clause{words: []*wanted{t}, beginning: q.goesOn(t)}).places(s) {
			found = append(found, foundTerm{s.words[i].from, t})
		}
	}
	slices.SortFunc(found, func(a, b foundTerm) int { return cmp.Compare(a.at, b.at) })
	return found[:min(len(found), mostHits)]
}

// cutWords cuts whole words around a place of a text, or runes where a word is
// longer than that.
func cutWords(text string, at int) string {
	from := at
	for words := 0; from > 0 && at-from < bytesBefore; {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if unicode.IsSpace(r) {
			if next, _ := utf8.DecodeRuneInString(text[from:]); !unicode.IsSpace(next) {
				if words++; words > wordsBefore {
					break
				}
			}
		}
		from -= size
	}
	if from > 0 && at-from >= bytesBefore { // in the middle of a word
		if space := strings.IndexFunc(text[from:at], unicode.IsSpace); space >= 0 {
			from += space
		}
	}
	text = strings.TrimLeftFunc(text[from:], unicode.IsSpace)
	words, end := 0, 0
	inSpace := true
	for i, r := range text {
		space := unicode.IsSpace(r)
		if space && !inSpace {
			if words++; words == snippetWords {
				return text[:i]
			}
			end = i
		}
		inSpace = space
		if i+utf8.RuneLen(r) > snippetBytes {
			if end > snippetBytes/2 {
				return text[:end]
			}
			return text[:i]
		}
	}
	return strings.TrimRightFunc(text, unicode.IsSpace)
}
