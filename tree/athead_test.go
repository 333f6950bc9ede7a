package tree_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// An append under the active head makes a root in an empty conversation, and
// otherwise stands under whatever head is active.
func TestAppendAtHead(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	first, err := s.Append(t.Context(), c.ID, uuid.Nil, user("first"), tree.AtHead())
	if err != nil || first.ParentID != uuid.Nil {
		t.Fatalf("%+v, %v", first.Message, err)
	}
	second, err := s.Append(t.Context(), c.ID, uuid.Nil, user("second"), tree.AtHead())
	if err != nil || second.ParentID != first.ID {
		t.Fatalf("%+v, %v", second.Message, err)
	}
	must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: first.ID}))(t)
	third, err := s.Append(t.Context(), c.ID, uuid.Nil, user("third"), tree.AtHead())
	if err != nil || third.ParentID != first.ID || third.Siblings.Index != 2 {
		t.Fatalf("%+v, %v", third.Message, err)
	}
	_, err = s.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":""}`))}, tree.AtHead())
	if f := fault.Of(err); f.Field != "content" {
		t.Errorf("the refusal of a single message names %q", f.Field)
	}
}

// What is sent again under the active head is the first append, wherever the head
// is by then. Other content, or another place, is a conflict.
func TestAppendAtHeadAgain(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	mustAppend(t, s, c.ID, uuid.Nil, user("before"))
	for length := 1; length <= 2; length++ {
		chain := make([]tree.NewMessage, length)
		for i := range chain {
			chain[i] = user("said")
			chain[i].ID = uuid.New()
		}
		add := func(opts ...tree.AppendOption) (bool, error) {
			if length == 1 {
				m, err := s.Append(t.Context(), c.ID, uuid.Nil, chain[0], opts...)
				return m.Created, err
			}
			stored, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, chain, opts...)
			return stored.Created, err
		}
		if created, err := add(tree.AtHead()); !created || err != nil {
			t.Fatal(created, err)
		}
		elsewhere := mustAppend(t, s, c.ID, uuid.Nil, user("another root")).ID
		if created, err := add(tree.AtHead()); created || err != nil || activeHead(t, s, c.ID) != elsewhere {
			t.Errorf("%d sent again: created %t, %v, and the head is %s", length, created, err, activeHead(t, s, c.ID))
		}
		refused(t, "as a root", second(add()), fault.Conflict)
		chain[length-1].Message = user("something else").Message
		refused(t, "other content", second(add(tree.AtHead())), fault.Conflict)
	}
}

// TestIfHead holds that an append which is bound to the active head stores nothing once
// another message is the head, and finds what it stored before.
func TestIfHead(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	first := user("first")
	first.ID = uuid.New()
	if stored, err := s.Append(t.Context(), c.ID, uuid.Nil, first, tree.IfHead(uuid.Nil)); !stored.Created || err != nil {
		t.Fatal(stored.Created, err)
	}
	second := []tree.NewMessage{user("second"), user("third")}
	chain := must(s.AppendChain(t.Context(), c.ID, first.ID, second, tree.IfHead(first.ID)))(t).Messages
	for _, saw := range []uuid.UUID{uuid.Nil, first.ID, chain[0].ID} {
		if _, err := s.AppendChain(t.Context(), c.ID, saw, second, tree.IfHead(saw)); !errors.Is(err, fault.Conflict) || fault.Of(err).Code != "changed_meanwhile" {
			t.Errorf("with the head %s before: %v", saw, err)
		}
	}
	if m, err := s.Append(t.Context(), c.ID, uuid.Nil, first, tree.IfHead(uuid.Nil)); m.Created || m.ID != first.ID || err != nil {
		t.Errorf("what is stored already gives %s, %v, %v", m.ID, m.Created, err)
	}
	if got, err := s.Conversation(t.Context(), c.ID); err != nil || got.HeadID != chain[1].ID {
		t.Errorf("the head is %s: %v", got.HeadID, err)
	}
}
