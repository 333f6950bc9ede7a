package tree_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A bundle of more nodes than are copied at once is stored whole or not at all:
// also where a call stands in one piece and its result in the next, and where
// only its last node is unsound.
func TestImportInPieces(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	const nodes = 2500
	bundle := func(last string) tree.Bundle {
		b := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}}
		parent := uuid.Nil
		for i := range nodes {
			body := `{"role":"user","content":"hi"}`
			switch i {
			case 998, 1998:
				body = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
			case 999, 1999:
				body = `{"role":"tool","tool_call_id":"a","content":"1"}`
			case 1000, 2000:
				body = `{"role":"tool","tool_call_id":"b","content":"2"}`
			case nodes - 1:
				body = last
			}
			n := tree.BundleNode{ID: uuid.New(), ParentID: parent, Body: json.RawMessage(body)}
			b.Nodes, parent = append(b.Nodes, n), n.ID
		}
		b.HeadID = parent
		return b
	}
	good := bundle(`{"role":"user","content":"the end"}`)
	for again := range 2 {
		imported, err := store.Import(t.Context(), good)
		if err != nil {
			t.Fatal(err)
		}
		if got := imported[0]; got.Added+got.Present != nodes || got.Present != again*nodes || len(got.Changed) > 0 {
			t.Errorf("%d added, %d present, %d changed", got.Added, got.Present, len(got.Changed))
		}
	}
	if c, err := store.Conversation(t.Context(), good.Conversation.ID); err != nil || c.HeadID != good.HeadID {
		t.Errorf("head %s, %v", c.HeadID, err)
	}
	bad := bundle(`{"role":"tool","tool_call_id":"a","content":"late"}`)
	var refused *fault.Error
	if _, err := store.Import(t.Context(), bad); !errors.As(err, &refused) || refused.Code != "tool_call_not_found" {
		t.Errorf("%v", err)
	}
	if _, err := store.Conversation(t.Context(), bad.Conversation.ID); !errors.Is(err, fault.NotFound) {
		t.Errorf("a bundle that was refused left a conversation: %v", err)
	}
}
