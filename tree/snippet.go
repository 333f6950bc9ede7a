package tree

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
)

// A snippet has so many words and bytes at most, and of both so many before the
// first word that was looked for.
const (
	snippetWords, wordsBefore = 32, 8
	snippetBytes, bytesBefore = 400, 100
)

// searchedText is the text of a message that its search looks at.
func searchedText(n db.Node) string {
	if n.SearchText.Valid {
		return n.SearchText.String
	}
	if m := chat.Read(n.Body); m.Plain {
		return m.Text()
	}
	return ""
}

// mostHits is how many places of a text a snippet is chosen among.
const mostHits = 1000

// snippet cuts a text around the first of the places where most of the terms
// stand together. Terms are words in lower case, as Postgres makes it; where that
// is not what Go makes, and none is found, the text's beginning is shown. Of prefix, one of them, words may begin with it.
func snippet(text string, terms []string, prefix string) string {
	found := places(text, terms, prefix)
	at, most := 0, 0
	for i, p := range found {
		seen := make(map[int]bool, len(terms))
		for _, near := range found[i:] {
			if near.at > p.at+snippetBytes-bytesBefore {
				break
			}
			seen[near.term] = true
		}
		if len(seen) > most {
			at, most = p.at, len(seen)
		}
		if most == len(terms) {
			break
		}
	}
	return excerpt(text, at)
}

// A foundTerm is where in a text one of the terms begins.
type foundTerm struct{ at, term int }

// places finds whole words, and those that begin with prefix.
func places(text string, terms []string, prefix string) (found []foundTerm) {
	byFirst := map[rune][]int{}
	lower := make([]string, len(terms))
	for i, term := range terms {
		lower[i] = strings.ToLower(term)
		first, _ := utf8.DecodeRuneInString(lower[i])
		byFirst[first] = append(byFirst[first], i)
	}
	before := ' '
	for at, r := range text {
		if !inWord(before) || !inWord(r) {
			for _, i := range byFirst[unicode.ToLower(r)] {
				if begins(text[at:], lower[i], terms[i] == prefix) {
					found = append(found, foundTerm{at, i})
				}
			}
			if len(found) >= mostHits {
				return found
			}
		}
		before = r
	}
	return found
}

// begins tells whether a text begins with a term in lower case, as a word of
// its own or as the beginning of one.
func begins(text, term string, ofWord bool) bool {
	last := ' '
	for _, want := range term {
		r, size := utf8.DecodeRuneInString(text)
		if size == 0 || unicode.ToLower(r) != want {
			return false
		}
		text, last = text[size:], want
	}
	next, size := utf8.DecodeRuneInString(text)
	return ofWord || size == 0 || !inWord(last) || !inWord(next)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// excerpt cuts whole words around a place of a text, or runes where a word is
// longer than that.
func excerpt(text string, at int) string {
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
