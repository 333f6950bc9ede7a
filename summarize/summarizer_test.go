package summarize

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// own is a program's own Summarizer.
type own func(in prompt.Input) (prompt.Result, error)

func (f own) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) { return f(in) }

// A program's own Summarizer writes the summary, and one that breaks its promises
// leaves that to the digest.
func TestOwnSummarizer(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	for _, test := range []struct {
		name string
		with own
		why  string // what the record says of it; "" where its summary is saved
	}{
		{"all", func(in prompt.Input) (prompt.Result, error) {
			return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
		}, ""},
		{"a part, again and again", func(in prompt.Input) (prompt.Result, error) {
			return prompt.Result{Text: written, Model: "own", Taken: min(10, len(in.Fold))}, nil
		}, ""},
		{"an error", func(prompt.Input) (prompt.Result, error) { return prompt.Result{}, errors.New("it is tired") }, "it is tired"},
		{"nothing", func(prompt.Input) (prompt.Result, error) { return prompt.Result{Model: "own"}, nil }, "a summary of 0 bytes"},
		{"no message", func(prompt.Input) (prompt.Result, error) { return prompt.Result{Text: written, Model: "own"}, nil }, "takes 0 of"},
		{"more than there are", func(prompt.Input) (prompt.Result, error) {
			return prompt.Result{Text: written, Model: "own", Taken: 10_000}, nil
		}, "takes 10000 of"},
	} {
		s := service(t, store, Config{Summarizer: test.with})
		id := conversation(t, store)
		head := talk(t, store, id, uuid.Nil, 40)
		k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
		if err != nil || k.Outcome != tree.OutcomeSaved {
			t.Fatalf("%s: %s: %s, %v", test.name, k.Outcome, k.Reason, err)
		}
		if model := map[bool]string{true: "own", false: digest.Name}[test.why == ""]; k.Model != model || !strings.Contains(string(k.Attempts), test.why) {
			t.Errorf("%s: by %s after %s", test.name, k.Model, k.Attempts)
		}
		if c := contextOf(t, s, id, head.ID); !c.Complete || c.Counts.Folded == 0 {
			t.Errorf("%s: %s", test.name, c.Status)
		}
	}
}
