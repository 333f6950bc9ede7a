package main

import (
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt"
)

// What an audit found is told of what there was, and of nothing else.
func TestWriteAudit(t *testing.T) {
	t.Parallel()
	a := &prompt.Audit{Fold: 0.09, Prior: 1, Foreign: 0.5, Filled: 20}
	if got, want := writeAudit(a, false), "The model's text holds 9 % of what the messages say anew; 50 % of its names and numbers stand nowhere in them; 20 tokens of sentences were added for what it lacked."; got != want {
		t.Errorf("of a first summary\n got %s\nwant %s", got, want)
	}
	a.Filled = 0
	if got, want := writeAudit(a, true), "The model's text holds 9 % of what the messages say anew and 100 % of the summary before; 50 % of its names and numbers stand nowhere in them."; got != want {
		t.Errorf("of a merged one\n got %s\nwant %s", got, want)
	}
}
