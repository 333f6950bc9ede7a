package prompt

import (
	"strings"
	"testing"
)

func TestCleanTitle(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"A hedge for the shade":          "A hedge for the shade",
		"  \"A hedge.\"\n":               "A hedge",
		"Title: “A hedge”":               "A hedge",
		"## **A hedge**":                 "A hedge",
		"Title: `A hedge`":               "A hedge",
		"**Title:** A hedge":             "A hedge",
		"<title>":                        "<title>",
		"<think>hm\n</think>\nA hedge":   "A hedge",
		"```\nA hedge\n```":              "A hedge",
		"Notes on e.g. hedges.":          "Notes on e.g. hedges.",
		"“Walden” and “Emma” compared":   "“Walden” and “Emma” compared",
		"A\u200b\x1b hedge":              "A hedge",
		"":                               "",
		"\"\"":                           "",
		"<think>it never ends":           "",
		"A hedge\nA fence":               "",
		"I'm sorry, but I can't do that": "",
		strings.Repeat("hedge ", 20):     "",
		"a <coppice-title-0123> b":       "",
		"the nonce 0123456789abcdef":     "",
	} {
		got, err := CleanTitle(answer, "0123456789abcdef")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", answer, got, err, want)
		}
	}
}
