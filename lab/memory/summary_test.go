package memory

import (
	"context"
	"slices"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Grace Okafor moved to Lagos on May 14, 2026.": {"may 14", "14", "2026", "lagos", "may"}, // a first word's capital says nothing
		"See https://example.com/a?b=1, please.":       {"https://example.com/a?b=1"},
		"He calls it \"the *blue* room\".":             {"the blue room"},
		"It rained.":                                   nil,
	} {
		if got := facts(text); !slices.Equal(got, want) {
			t.Errorf("facts(%q) = %q, want %q", text, got, want)
		}
	}
	for _, test := range []struct {
		text, fact string
		want       bool
	}{{"port 5433 it is", "5433", true}, {"port 54331, or 5433", "5433", true}, {"port 54331", "5433", false}, {"", "x", false}} {
		if got := containsWord(test.text, test.fact); got != test.want {
			t.Errorf("containsWord(%q, %q) = %v", test.text, test.fact, got)
		}
	}
}

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

// Every fold gets its share of the messages, the summary before it, and a tenth
// of all that was folded so far.
func TestFolded(t *testing.T) {
	t.Parallel()
	counter := tokens.O200k()
	c := Chat{}
	for range 30 {
		c.Messages = append(c.Messages, Message{Role: "user", Text: "The port is 5433, and it rained."})
	}
	messages, total, err := c.fold(counter)
	if err != nil {
		t.Fatal(err)
	}
	var seen echo
	text, err := folded(t.Context(), &seen, messages, counter, 3)
	if err != nil || text != "fold" || len(seen) != 3 {
		t.Fatalf("%q of %d folds, %v", text, len(seen), err)
	}
	for i, in := range seen {
		if len(in.Fold) != 10 || in.TargetTokens != total*(i+1)/30 || (in.Prior != "") != (i > 0) || chat.Read(in.Fold[0].Body).Parts[0].Text != c.Messages[0].Text {
			t.Errorf("fold %d: %d messages to %d of %d tokens, after %q", i, len(in.Fold), in.TargetTokens, total, in.Prior)
		}
	}
}

// echo records what it is given.
type echo []prompt.Input

func (e *echo) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) {
	*e = append(*e, in)
	return prompt.Result{Text: "fold", Taken: len(in.Fold)}, nil
}
