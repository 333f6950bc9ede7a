package summarize

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// TestWhatStaysBesideASummary folds twice. The summarizer is told what stays word
// for word. What no longer stays is given to it again, as no summary repeats it.
// Thanks don't stay.
func TestWhatStaysBesideASummary(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	var inputs []prompt.Input
	settings := Defaults()
	settings.KeepUserRatio = 0.002
	s := service(t, store, Config{Settings: settings, Summarizer: own(func(in prompt.Input) (prompt.Result, error) {
		inputs = append(inputs, in)
		return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
	})})
	id := conversation(t, store)
	says := func(parent uuid.UUID, text string, pinned bool) uuid.UUID {
		m := check.Must(store.Append(t.Context(), id, parent, tree.NewMessage{Message: chat.Read((&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart(text)}}).Encode()), Pinned: pinned}))(t)
		return m.ID
	}
	pin := says(uuid.Nil, "Never cut the hedge in spring.", true)
	head := talk(t, store, id, pin, 30).ID
	thanks := says(head, "Thanks a lot, bye!", false)
	var kept []uuid.UUID
	for range 2 {
		head = talk(t, store, id, thanks, 30).ID
		check.Must(s.Compact(t.Context(), id, head, TriggerRequest, &Demand{KeepRecentMessages: 58}))(t)
		c := contextOf(t, s, id, head)
		if slices.Contains(c.Summary.KeptIDs, thanks) || !slices.Contains(c.Summary.KeptIDs, pin) {
			t.Errorf("kept are %v", c.Summary.KeptIDs)
		}
		if kept == nil {
			kept = c.Summary.KeptIDs
			if in := inputs[0]; !in.Stays[pin] || len(in.Kept)+len(in.Leaving) > 0 {
				t.Errorf("of the first fold stay %v, and of earlier ones %d and %d", in.Stays, len(in.Kept), len(in.Leaving))
			}
		}
		thanks = head
	}
	in := inputs[len(inputs)-1]
	if len(in.Kept) == 0 || in.Kept[0].ID != pin || len(in.Leaving) == 0 || len(in.Kept)+len(in.Leaving) != len(kept) {
		t.Fatalf("%d messages stayed beside the first summary; %d stay, and %d leave", len(kept), len(in.Kept), len(in.Leaving))
	}
	for _, m := range in.Leaving {
		if !slices.Contains(kept, m.ID) || strings.Contains(string(m.Body), "Thanks") {
			t.Errorf("%s leaves", m.Body)
		}
	}
}
