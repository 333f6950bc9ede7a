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

// A cuePhrase is a phrase of a language.
type cuePhrase struct {
	text    string
	cue     cueSet
	atStart bool // counts only at the start of a sentence
}

// cueKey is how many bytes a phrase has at least.
const cueKey = 3

// cues has the phrases by their first bytes.
var cues = func() map[string][]cuePhrase {
	index := map[string][]cuePhrase{}
	for line := range strings.SplitSeq(phrases, "\n") {
		name, list, isList := strings.Cut(line, ": ")
		for phrase := range strings.SplitSeq(list, "|") {
			if text := strings.TrimPrefix(phrase, "^"); isList {
				index[text[:cueKey]] = append(index[text[:cueKey]], cuePhrase{text, cueNames[name], text != phrase})
			}
		}
	}
	return index
}()

// findCues gives the cues of a sentence in lower case. A phrase begins with a word, or
// with any character in scripts without spaces or with endings on every word. In an idle
// turn of phrase no word is a cue.
func findCues(sentence string) (found cueSet) {
	before, start, idleEnd := scriptNone, true, 0
	for i, r := range sentence {
		script := scriptOf(r)
		begins := script > scriptSpaced || script == scriptSpaced && before != scriptSpaced
		if before = script; !begins || i < idleEnd {
			continue
		}
		here := cueSet(0)
		for _, p := range cues[sentence[i:min(i+cueKey, len(sentence))]] {
			if p.atStart && !start || !strings.HasPrefix(sentence[i:], p.text) {
				continue
			}
			end := i + len(p.text)
			last, _ := utf8.DecodeLastRuneInString(p.text)
			next, _ := utf8.DecodeRuneInString(sentence[end:])
			if scriptOf(last) == scriptSpaced && scriptOf(next) == scriptSpaced {
				continue // a longer word
			}
			if here |= p.cue; p.cue == cueIdle {
				here, idleEnd = cueIdle, end
				break
			}
		}
		found, start = found|here, false
	}
	return found
}
