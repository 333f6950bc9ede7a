package summarize

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// Promise 1 by an example. The summarizer looks ahead to the anchor, so its
// summary may hold what was said between the cutoff and the anchor. A branch
// that leaves the path there must not get it, neither by its summary nor
// verbatim.
func TestBranchOffBetweenCutoffAndAnchorHasNoSummary(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	settings := smallSettings()
	settings.LookAhead, settings.AnchorSlackTurns = LookAheadRecent, 1
	s := service(t, store, Config{Settings: settings, Summarizer: Cascade{Models: []Model{{Model: witness{}, Window: 100_000}}}})
	id := conversation(t, store)
	var path []tree.Message
	said := func(parent uuid.UUID, n int) tree.Message {
		role := []string{"user", "assistant"}[n%2]
		return add(t, store, id, parent, fmt.Sprintf(`{"role":%q,"content":"m%dm is one of the many things that were said on this long way."}`, role, n))
	}
	parent := uuid.Nil
	for n := range 24 {
		path = append(path, said(parent, n))
		parent = path[n].ID
	}
	k := compact(t, s, id, parent, Demand{KeepRecentMessages: 8})
	indexOf := func(id uuid.UUID) int {
		return slices.IndexFunc(path, func(m tree.Message) bool { return m.ID == id })
	}
	cutoff, anchor := indexOf(k.CutoffID), indexOf(k.AnchorID)
	if cutoff < 2 || anchor < cutoff+4 {
		t.Fatalf("the cutoff is message %d and the anchor %d: nothing lies between", cutoff, anchor)
	}
	for n, m := range path {
		if has := contextOf(t, s, id, m.ID).Summary != nil; has != (n >= anchor) {
			t.Errorf("at message %d of cutoff %d and anchor %d: a summary is there %t", n, cutoff, anchor, has)
		}
	}
	for parent := range path {
		// A branch's own messages begin with the role that the path's next has.
		head := said(path[parent].ID, 101+100*parent+parent%2)
		head = said(head.ID, 102+100*parent+parent%2)
		c := contextOf(t, s, id, head.ID)
		if has := c.Summary != nil; has != (parent >= anchor) {
			t.Errorf("branching off below message %d of cutoff %d and anchor %d: a summary is there %t", parent, cutoff, anchor, has)
		}
		var onBranch []string
		for n := range parent + 1 {
			onBranch = append(onBranch, fmt.Sprintf("m%dm", n))
		}
		onBranch = append(onBranch, fmt.Sprintf("m%dm", 101+100*parent+parent%2), fmt.Sprintf("m%dm", 102+100*parent+parent%2))
		shown := marksIn(c.AppendMessages(nil))
		for _, mark := range shown {
			if !slices.Contains(onBranch, mark) {
				t.Errorf("branching off below message %d: the context shows %s, which isn't on the branch", parent, mark)
			}
		}
		if len(shown) != len(onBranch) {
			t.Errorf("branching off below message %d: %d of the branch's %d messages are shown or summarized", parent, len(shown), len(onBranch))
		}
	}
}

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
		if _, err := store.Prune(t.Context(), id, summaries[i]); err != nil {
			t.Fatal(err)
		}
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
		summary, err := store.Summary(t.Context(), id, k.SummaryID)
		if err != nil {
			t.Fatal(err)
		}
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
	summary, err := store.Summary(t.Context(), id, k.SummaryID)
	if err != nil {
		t.Fatal(err)
	}
	told := marksIn(summary.Body)
	for n := range 38 {
		if mark := fmt.Sprintf("m%dm", n); !slices.Contains(told, mark) {
			t.Errorf("after %d steps the summary doesn't tell of the folded message %s", calls.Load(), mark)
		}
	}
}
