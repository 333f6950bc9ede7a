package summarize_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// The active head is found by the query of its branch, and gives the same as its id.
func TestActiveHeadTakesNoRoundTrip(t *testing.T) {
	t.Parallel()
	trips := &dbtest.Trips{Handle: dbtest.New(t)}
	store := tree.New(trips)
	service := check.Must(summarize.New(store, summarize.Config{}))(t)
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	empty := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	var path []uuid.UUID
	for i, role := range []string{"system", "user", "assistant", "user", "assistant", "user"} {
		parent := uuid.Nil
		if i > 0 {
			parent = path[i-1]
		}
		body := json.RawMessage(`{"role":"` + role + `","content":"A word about trees."}`)
		m := check.Must(store.Append(t.Context(), c.ID, parent, tree.NewMessage{Message: chat.Read(body)}))(t)
		path = append(path, m.ID)
	}
	check.Must(store.Summaries().Add(t.Context(), c.ID, tree.NewSummary{
		AnchorID: path[3], Body: json.RawMessage(`{"role":"user","content":"What was said."}`),
		Range: tree.SummaryRange{LastSummarizedID: path[2], Model: "a test"},
	}))(t)
	for name, test := range map[string]struct {
		trips int
		read  func(ctx context.Context, conversation, head uuid.UUID) (any, error)
	}{
		"a context": {1, func(ctx context.Context, conversation, head uuid.UUID) (any, error) {
			return service.Context(ctx, conversation, head, summarize.Window{})
		}},
		"an explanation": {5, func(ctx context.Context, conversation, head uuid.UUID) (any, error) {
			return service.Explain(ctx, conversation, head)
		}},
		"a compaction that does nothing": {1, func(ctx context.Context, conversation, head uuid.UUID) (any, error) {
			k, err := service.Compact(ctx, conversation, head, summarize.TriggerAppend, nil)
			k.ID, k.Duration = uuid.Nil, 0
			return k, err
		}},
	} {
		// Any head of the path is the active one in turn: in the tail, at the
		// cutoff, in the prefix.
		for i, head := range path {
			check.Must(store.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: head}))(t)
			want, err := test.read(t.Context(), c.ID, head)
			check.Need(t, err == nil, "%s: %v", name, err)
			trips.Count()
			got, err := test.read(t.Context(), c.ID, uuid.Nil)
			if n := trips.Count(); err != nil || asJSON(t, got) != asJSON(t, want) || n > test.trips {
				t.Errorf("%s of message %d: %d round trips, %v, want at most %d\n got %s\nwant %s", name, i, n, err, test.trips, asJSON(t, got), asJSON(t, want))
			}
		}
		for conversation, code := range map[uuid.UUID]string{empty.ID: "no_active_head", uuid.New(): "conversation_not_found"} {
			if _, err := test.read(t.Context(), conversation, uuid.Nil); err == nil || fault.Of(err).Code != code {
				t.Errorf("%s: %v, want %s", name, err, code)
			}
		}
	}
}

func asJSON(t *testing.T, thing any) string {
	t.Helper()
	raw := check.Must(json.Marshal(thing))(t)
	return string(raw)
}
