package tree_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestAside holds that a client that keeps its history itself is recognized where
// messages that it never saw stand between those that it knows.
func TestAside(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	say := func(role, text string) *chat.Message {
		m, err := chat.Parse(json.RawMessage(`{"role":"` + role + `","content":"` + text + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	history := []*chat.Message{say("user", "Which tree?")}
	in := tree.NewConversation{ID: uuid.New()}
	path, err := s.AppendPath(t.Context(), in, history)
	if err != nil {
		t.Fatal(err)
	}
	steps, _, err := s.AppendChain(t.Context(), in.ID, path.HeadID, []tree.NewMessage{
		{Body: json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"recall","arguments":"{}"}}]}`)},
		{Body: json.RawMessage(`{"role":"tool","tool_call_id":"a","content":"A hazel."}`)},
	}, tree.Aside(), tree.KeepHead())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Conversation(t.Context(), in.ID); err != nil || c.HeadID != path.HeadID {
		t.Errorf("%+v, %v", c, err)
	}
	answer := say("assistant", "A hazel.")
	stored, created, err := s.Append(t.Context(), in.ID, steps[1].ID, tree.NewMessage{ID: uuid.New(), Body: answer.Raw}, tree.Behind(path.HeadID))
	if err != nil || !created {
		t.Fatal(err)
	}
	if again, created, err := s.Append(t.Context(), in.ID, steps[1].ID, tree.NewMessage{ID: stored.ID, Body: answer.Raw}, tree.Behind(path.HeadID)); err != nil || created || again.ID != stored.ID {
		t.Errorf("%v, %v", created, err)
	}
	if found, err := s.FindPath(t.Context(), in.ID, tree.HashPath(history)); err != nil || found.HeadID != path.HeadID {
		t.Errorf("the question is %+v, %v", found, err)
	}
	history = append(history, answer)
	if found, err := s.FindPath(t.Context(), in.ID, tree.HashPath(history)); err != nil || found.HeadID != stored.ID || found.Known != 2 || found.Tokens != stored.PathTokens {
		t.Errorf("the answer is %+v, %v", found, err)
	}
	more, err := s.AppendPath(t.Context(), in, append(history, say("user", "Why?")))
	if err != nil || more.Known != 2 {
		t.Fatalf("%+v, %v", more, err)
	}
	if m, err := s.Message(t.Context(), in.ID, more.HeadID); err != nil || m.ParentID != stored.ID {
		t.Errorf("%+v, %v", m, err)
	}
	// Below a message without a path hash there is none, and with Behind none is made up.
	plain, _, err := s.Append(t.Context(), in.ID, steps[1].ID, tree.NewMessage{Body: answer.Raw})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Append(t.Context(), in.ID, plain.ID, tree.NewMessage{Body: say("user", "And?").Raw}, tree.Behind(plain.ID)); err != nil {
		t.Error(err)
	}
}
