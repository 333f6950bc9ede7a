package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/check"
)

func TestSnippet(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("filler ", 5000)
	for name, test := range map[string]struct {
		text  string
		terms []string
		holds string
	}{
		"a short text":             {"the quick fox 4", []string{"fox"}, "the quick fox 4"},
		"in the middle":            {filler + "An Oak stands " + filler, []string{"oak"}, "filler An Oak stands filler"},
		"a whole word":             {filler + "soak " + filler + "oak", []string{"oak"}, "filler oak"},
		"most of them together":    {filler + "oak " + filler + "the oak and the ash " + filler, []string{"ash", "oak"}, "the oak and the ash"},
		"another case":             {filler + "ÉLAN vital " + filler, []string{"élan"}, "ÉLAN vital"},
		"without accents":          {filler + "ÉLAN vital " + filler, []string{"elan"}, "ÉLAN vital"},
		"a word with punctuation":  {filler + "see http://a.org/b?c=d " + filler, []string{"a.org/b?c=d", "a.org", "/b?c=d"}, "http://a.org/b?c=d"},
		"none":                     {"begin " + filler, []string{"oak"}, "begin filler"},
		"words without end":        {strings.Repeat("x", 1<<20) + " oak " + strings.Repeat("林", 1<<18), []string{"oak"}, "oak"},
		"bytes that are no letter": {filler + "\u0301oak\u0301 oak " + filler, []string{"oak"}, "oak filler"},
		"nothing":                  {"", []string{"oak"}, ""},
	} {
		q := check.Must(parse(`"`+strings.Join(test.terms, `" or "`)+`"`, allWords))(t)
		got := excerpt(test.text, q.found(sayingOf(test.text)))
		if !strings.Contains(got, test.holds) || len(got) > excerptBytes || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, %d words: %q, want %q in it", name, len(got), len(strings.Fields(got)), got, test.holds)
		}
	}
}
