package digest

import (
	_ "embed"
	"strings"
	"unicode/utf8"
)

// A cueSet is what words in a sentence tell about it.
type cueSet uint16

const (
	cueCorrection cueSet = 1 << iota // what was said before is wrong
	cueDecision                      // what holds from now on
	cueWish                          // what somebody wants
	cueBan                           // what somebody doesn't want, or can't stand
	cueTime                          // when something was or will be
	cueIdle                          // a turn of phrase whose words tell nothing
)

// phrases are the words by which a digest knows what a sentence is about, in lower
// case: for each language, and each cue, a line of phrases between "|". A "^" stands
// before what counts only at the start of a sentence. A language that isn't there still
// has its names, numbers and addresses, and its users still come first.
//
//go:embed phrases.txt
var phrases string

var cueNames = map[string]cueSet{
	"correction": cueCorrection, "decision": cueDecision, "wish": cueWish, "ban": cueBan, "time": cueTime, "idle": cueIdle,
}

// A cuePhrase is the rest of a phrase after its first word.
type cuePhrase struct {
	rest    string
	cue     cueSet
	atStart bool // counts only at the start of a sentence
}

// cues has the phrases by their first word, or by their first character in scripts
// without spaces, or with endings on every word.
var cues = func() map[string][]cuePhrase {
	index := map[string][]cuePhrase{}
	for line := range strings.SplitSeq(phrases, "\n") {
		name, list, _ := strings.Cut(line, ": ")
		for phrase := range strings.SplitSeq(list, "|") {
			bare := strings.TrimPrefix(phrase, "^")
			end := cueEnd(bare, 0)
			index[bare[:end]] = append(index[bare[:end]], cuePhrase{bare[end:], cueNames[name], bare != phrase})
		}
	}
	return index
}()

// findCues gives the cues of a sentence in lower case. In an idle turn of phrase no
// word is a cue.
func findCues(sentence string) (found cueSet) {
	start := true
	for i := 0; i < len(sentence); {
		end := cueEnd(sentence, i)
		if end == i {
			_, size := utf8.DecodeRuneInString(sentence[i:])
			i += size
			continue
		}
		cue, length := match(cues[sentence[i:end]], sentence[end:], start)
		found |= cue
		i, start = end+length, false
	}
	return found
}

// match gives the cues of the phrases that text goes on with. An idle one hides the
// others, and its length is what to go on behind.
func match(phrases []cuePhrase, text string, start bool) (found cueSet, length int) {
	for _, p := range phrases {
		if p.atStart && !start || !strings.HasPrefix(text, p.rest) {
			continue
		}
		last, _ := utf8.DecodeLastRuneInString(p.rest)
		next, _ := utf8.DecodeRuneInString(text[len(p.rest):])
		switch {
		case scriptOf(last) == scriptSpaced && scriptOf(next) == scriptSpaced: // a longer word
		case p.cue&cueIdle != 0:
			return p.cue, len(p.rest)
		default:
			found |= p.cue
		}
	}
	return found, 0
}

// cueEnd is where the word ends that begins at i, or the character of a script
// in which a phrase may begin at each; i for no word.
func cueEnd(text string, i int) int {
	for start := i; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		script := scriptOf(r)
		if script >= scriptGlued && i == start {
			return i + size
		}
		if script != scriptSpaced {
			return i
		}
		i += size
	}
	return i
}
