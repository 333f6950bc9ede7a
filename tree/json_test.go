package tree_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// What is written as JSON is read again as it was, also a body's members of the names that
// an answer has.
func TestJSONIsRead(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01990000-0000-7000-8000-00000000000a")
	at := time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC)
	m := tree.Message{
		ConversationID: id, ID: id, ParentID: id, Role: tree.RoleUser, Body: json.RawMessage(`{"content":"Why <cut> it?","name":"ada","role":"user"}`),
		Reasoning: "Hm.", Metadata: json.RawMessage(`{"a":1}`), Pinned: true, Tokens: 5, Depth: 2, Siblings: tree.Siblings{Index: 1, Count: 2}, CreatedAt: at,
		Annotation: tree.Annotation{Rating: 1, Label: "good", Note: "Keep."}, Graft: &tree.Graft{FromHeadID: id, Messages: 1},
	}
	other := tree.Message{ID: id, Body: json.RawMessage(`{"grafted":true,"label":["x"],"rating":"good","reasoning":{"effort":"low"},"role":"user"}`), CreatedAt: at}
	summary := tree.Node{ID: id, ParentID: id, Kind: tree.KindSummary, Role: tree.RoleUser, Tokens: 9, CreatedAt: at, Summary: &tree.SummaryRange{LastSummarizedID: id, KeptIDs: []uuid.UUID{id}, Model: "m"}}
	var again, otherAgain tree.Message
	var node tree.Node
	for _, of := range []struct {
		was json.Marshaler
		is  interface {
			json.Marshaler
			json.Unmarshaler
		}
	}{{m, &again}, {other, &otherAgain}, {summary, &node}} {
		was, err := of.was.MarshalJSON()
		if err == nil {
			err = of.is.UnmarshalJSON(was)
		}
		is, _ := of.is.MarshalJSON()
		if err != nil || string(is) != string(was) {
			t.Errorf("%v\n%s is read as\n%s", err, was, is)
		}
	}
}
