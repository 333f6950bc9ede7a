package digest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A cueSet is what words in a sentence tell about it.
type cueSet uint16

const (
	cueCorrection cueSet = 1 << iota // what was said before is wrong
	cueDecision                      // what holds from now on
	cueWish                          // what somebody wants
	cueBan                           // what somebody doesn't want, or can't stand
	cueIdentity                      // who somebody is
	cueDone                          // something is finished
	cueOpen                          // something is to be done
	cueConfirm                       // yes, thanks, it works
	cueUnreal                        // what is said is not so, or only if something is
	cueSelf                          // somebody tells of himself
	cueTime                          // when something was or will be
	cueIdle                          // a turn of phrase whose words tell nothing
	cueGreets                        // a greeting, always with cueIdle
	cueLeans                         // is understood only with what was said before
	cueAsks                          // what, where, when
	cueMore                          // there are words that are no cue

	// cueRule is what a user wants to hold from now on.
	cueRule = cueCorrection | cueDecision | cueBan
)

// A cuePhrase is the rest of a phrase after its first word.
type cuePhrase struct {
	rest    string
	cue     cueSet
	atStart bool // counts only at the start of a sentence
}

// cueIndex finds phrases by their first word, and those in scripts without
// spaces, or with endings on every word, by their first character.
type cueIndex struct {
	byWord map[string][]cuePhrase
	byRune map[rune][]cuePhrase // rest is the whole phrase
}

var cues = newCueIndex()

func newCueIndex() cueIndex {
	index := cueIndex{map[string][]cuePhrase{}, map[rune][]cuePhrase{}}
	for _, list := range cuePhrases {
		for phrase := range strings.SplitSeq(list.phrases, "|") {
			bare := strings.TrimPrefix(phrase, "^")
			p := cuePhrase{rest: bare, cue: list.cue, atStart: bare != phrase}
			first, _ := utf8.DecodeRuneInString(bare)
			if hasNoWords(first) {
				index.byRune[first] = append(index.byRune[first], p)
				continue
			}
			word := bare[:wordEnd(bare, 0)]
			p.rest = bare[len(word):]
			index.byWord[word] = append(index.byWord[word], p)
		}
	}
	return index
}

// find gives the cues of a sentence in lower case. In an idle turn of phrase no
// word is a cue.
func (x cueIndex) find(sentence string) cueSet {
	const least = 3 // bytes of a word that tells more than a cue
	var found cueSet
	start := true
	until := 0 // where the phrases end that were found
	for i := 0; i < len(sentence); {
		r, size := rune(sentence[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(sentence[i:])
		}
		phrases, at, next, more := []cuePhrase(nil), i, i+size, false
		switch {
		case r >= utf8.RuneSelf && hasNoWords(r):
			phrases, more = x.byRune[r], unicode.IsLetter(r)
		case isWordRune(r):
			next = wordEnd(sentence, i)
			phrases, at, more = x.byWord[sentence[i:next]], next, next-i >= least
		default:
			i = next
			continue
		}
		here, end := match(phrases, sentence[at:], start)
		found |= here
		if here == 0 && more && i >= until {
			found |= cueMore
		}
		if here != 0 {
			until = max(until, at+end)
		}
		if here&cueIdle != 0 {
			next = at + end
		}
		i, start = next, false
	}
	return found
}

// match gives the cues of the phrases that text begins with, and where the
// longest ends. An idle one hides the others.
func match(phrases []cuePhrase, text string, start bool) (found cueSet, end int) {
	for _, p := range phrases {
		switch {
		case p.atStart && !start, !strings.HasPrefix(text, p.rest), !endsWord(text, p.rest):
		case p.cue&cueIdle != 0 && found&cueIdle == 0:
			found, end = p.cue, len(p.rest)
		case p.cue&cueIdle != 0 || found&cueIdle == 0:
			found, end = found|p.cue, max(end, len(p.rest))
		}
	}
	return found, end
}

// endsWord tells whether the phrase that text begins with isn't the start of a
// longer word.
func endsWord(text, phrase string) bool {
	if phrase == "" {
		return true
	}
	if first, _ := utf8.DecodeRuneInString(phrase); hasNoWords(first) {
		return true
	}
	last, _ := utf8.DecodeLastRuneInString(phrase)
	next, _ := utf8.DecodeRuneInString(text[len(phrase):])
	return !isWordRune(last) || !isWordRune(next) || len(text) == len(phrase)
}

// wordEnd is where the word that begins at i ends.
func wordEnd(text string, i int) int {
	for i < len(text) {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
			if hasNoWords(r) {
				return i
			}
		}
		if !isWordRune(r) {
			return i
		}
		i += size
	}
	return i
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '\'' || r == '_'
	}
	return r == '’' || unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.IsDigit(r)
}

// hasNoWords tells the scripts in which a phrase is looked for at every
// character: those that put no spaces between words, and those that glue
// endings or articles to them.
func hasNoWords(r rune) bool {
	switch {
	case r < 0x0590:
		return false
	case r < 0x0700, // Hebrew, Arabic
		r >= 0x0e00 && r < 0x1000,   // Thai, Lao, Tibetan
		r >= 0x1000 && r < 0x10a0,   // Burmese
		r >= 0x1780 && r < 0x1800,   // Khmer
		r >= 0x3040 && r < 0xa000,   // kana, Han
		r >= 0xac00 && r < 0xd7b0,   // Hangul
		r >= 0xf900 && r < 0xfb00,   // Han
		r >= 0xfb50 && r < 0xfe00,   // Arabic
		r >= 0x20000 && r < 0x3ffff: // Han
		return true
	}
	return false
}
