package embed

import (
	"strings"
	"testing"
)

// A long message is embedded by its beginning, in whole letters.
func TestShortened(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text   string
		tokens int
		most   int
	}{
		{"  short \n", 2, 5},
		{strings.Repeat("word ", 20_000), 20_000, 5 * maxTextTokens},
		{strings.Repeat("é", 40_000), 1000, maxTextBytes},
		{"", 0, 0},
	} {
		got := shortened(test.text, test.tokens)
		if len(got) > test.most || !strings.HasPrefix(strings.TrimSpace(test.text), got) || got == "" != (test.text == "") {
			t.Errorf("%d bytes of %d", len(got), len(test.text))
		}
	}
}
