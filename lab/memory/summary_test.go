package memory

import (
	"testing"
)

// Evidence is held by what a summary says, and a unit by one line of it: not by
// two, and not by the index.
func TestHeldBy(t *testing.T) {
	t.Parallel()
	c := Chat{
		Messages:  []Message{{Role: "user", Text: "Wendy repaired the violin in Bergen for 340 kroner.\n```\ncode := 77\n```"}, {Role: "user", Text: "It rained."}},
		Questions: []Question{{Evidence: map[int]bool{0: true}}},
	}
	e := newEvidence(c)
	for text, want := range map[string]Held{
		"":                 {},
		c.Messages[0].Text: {Facts: Share{Held: 2}, Words: Share{Held: 6}, Units: Share{Held: 1}},
		"Wendy repaired the violin.\nIn Bergen, for 340 kroner.":          {Facts: Share{Held: 2}, Words: Share{Held: 6}},
		"Recall finds the messages about: Wendy repaired violin Bergen 3": {Facts: Share{Held: 1}, Words: Share{Held: 4}},
	} {
		want.Facts.Of, want.Words.Of, want.Units.Of = 2, 6, 1
		if got := e.heldBy(text); got != want {
			t.Errorf("%q holds %+v, want %+v", text, got, want)
		}
	}
}
