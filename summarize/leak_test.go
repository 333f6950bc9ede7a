package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

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
