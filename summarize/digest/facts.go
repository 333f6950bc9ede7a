package digest

import (
	"iter"
	"strings"
)

// Terms returns what a text says something by, in small letters: its informative
// words and its facts. Facts are names, numbers, dates, addresses, paths,
// identifiers and quoted strings; the second value tells them. A term comes as often
// as it stands in the text.
func Terms(text string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		v := vocabulary{}
		for s := range sentences(text) {
			for _, t := range v.terms(s.text, true) {
				if t.kind == kindPhrase || t.kind == kindWord && t.short {
					continue
				}
				if !yield(strings.ToLower(s.text[t.start:t.end]), t.kind.isFact()) {
					return
				}
			}
		}
	}
}
