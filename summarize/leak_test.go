package summarize

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// Compacted twice at one anchor, the newer summary stands in the context. It is
// undone, and the older one is back; then the messages themselves are.
func TestUndoBringsBackTheSummaryBefore(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: witness{}, Window: 100_000}}}})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 8)
	whole := contextOf(t, s, id, head.ID)
	if whole.Summary != nil {
		t.Fatal("there is a summary before any compaction")
	}
	contexts := []Context{whole}
	var summaries []uuid.UUID
	for keep := range 2 {
		k := compact(t, s, id, head.ID, Demand{KeepRecentMessages: 8 - 4*keep})
		c := contextOf(t, s, id, head.ID)
		if k.Outcome != tree.OutcomeSaved || c.Summary == nil || c.Summary.ID != k.SummaryID {
			t.Fatalf("%s (%s): the context holds %v", k.Outcome, k.Reason, c.Summary)
		}
		contexts, summaries = append(contexts, c), append(summaries, k.SummaryID)
	}
	for i := 1; i >= 0; i-- {
		check.Must(store.Prune(t.Context(), id, summaries[i]))(t)
		got, want := string(contextOf(t, s, id, head.ID).AppendMessages(nil)), string(contexts[i].AppendMessages(nil))
		if got != want {
			t.Errorf("after undoing summary %d\ngot  %s\nwant %s", i, got, want)
		}
	}
}

// A new summary merges the one before it: what that one told of messages which
// are folded for good isn't lost.
func TestMergeHoldsThePriorSummary(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: witness{}, Window: 100_000}}}})
	id := conversation(t, store)
	parent, prior := uuid.Nil, uuid.Nil
	for round := range 3 {
		for n := range 10 {
			role := []string{"user", "assistant"}[n%2]
			parent = add(t, store, id, parent, fmt.Sprintf(`{"role":%q,"content":"m%dm is what was said here%s"}`, role, 10*round+n, strings.Repeat(", and then some more", 8))).ID
		}
		k := compact(t, s, id, parent, Demand{KeepRecentMessages: 2})
		if k.PriorSummaryID != prior {
			t.Errorf("round %d: the compaction merges %s, want %s", round, k.PriorSummaryID, prior)
		}
		prior = k.SummaryID
		summary := check.Must(store.Summary(t.Context(), id, k.SummaryID))(t)
		told := marksIn(summary.Body)
		for n := range 10*round + 8 {
			if mark := fmt.Sprintf("m%dm", n); !slices.Contains(told, mark) {
				t.Errorf("round %d: the summary doesn't tell of the folded message %s", round, mark)
			}
		}
	}
}

// Where a summarizer's window takes several steps, each merges what the step
// before it wrote: the last one's text tells of the first one's messages.
func TestStepsHoldEveryMessage(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	var calls atomic.Int32
	model := &llmtest.Model{Answer: func(ctx context.Context, req llm.Request) (llm.Response, error) {
		calls.Add(1)
		return witness{}.Complete(ctx, req)
	}}
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: 3000}}}})
	id := conversation(t, store)
	parent := uuid.Nil
	for n := range 40 {
		role := []string{"user", "assistant"}[n%2]
		parent = add(t, store, id, parent, fmt.Sprintf(`{"role":%q,"content":"m%dm is what was said here%s"}`, role, n, strings.Repeat(", and then some more", 12))).ID
	}
	k := compact(t, s, id, parent, Demand{KeepRecentMessages: 2})
	if calls.Load() < 2 {
		t.Fatalf("%d calls: the window takes all in one step", calls.Load())
	}
	summary := check.Must(store.Summary(t.Context(), id, k.SummaryID))(t)
	told := marksIn(summary.Body)
	for n := range 38 {
		if mark := fmt.Sprintf("m%dm", n); !slices.Contains(told, mark) {
			t.Errorf("after %d steps the summary doesn't tell of the folded message %s", calls.Load(), mark)
		}
	}
}
