package tree_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// An append under the active head makes a root in an empty conversation, and
// otherwise stands under whatever head is active.
func TestAppendAtHead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	first, _, err := s.Append(t.Context(), c.ID, uuid.Nil, user("first"), tree.AtHead())
	if err != nil || first.ParentID != uuid.Nil {
		t.Fatalf("%+v, %v", first, err)
	}
	second, _, err := s.Append(t.Context(), c.ID, uuid.Nil, user("second"), tree.AtHead())
	if err != nil || second.ParentID != first.ID {
		t.Fatalf("%+v, %v", second, err)
	}
	if _, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: first.ID}); err != nil {
		t.Fatal(err)
	}
	third, _, err := s.Append(t.Context(), c.ID, uuid.Nil, user("third"), tree.AtHead())
	if err != nil || third.ParentID != first.ID || third.Siblings.Index != 2 {
		t.Fatalf("%+v, %v", third, err)
	}
	_, _, err = s.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Body: []byte(`{"role":"user","content":""}`)}, tree.AtHead())
	if f := fault.Of(err); f.Field != "content" {
		t.Errorf("the refusal of a single message names %q", f.Field)
	}
}

// What is sent again under the active head is the first append, wherever the head
// is by then. Other content, or another place, is a conflict.
func TestAppendAtHeadAgain(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	rapid.Check(t, func(r *rapid.T) {
		c := newConversation(t, s)
		var all []tree.Message
		for i := range rapid.IntRange(0, 4).Draw(r, "messages before") {
			parent := uuid.Nil
			if at := rapid.IntRange(0, i).Draw(r, "parent"); at < i {
				parent = all[at].ID
			}
			all = append(all, mustAppend(t, s, c.ID, parent, user("before")))
		}
		chain := make([]tree.NewMessage, rapid.IntRange(1, 3).Draw(r, "messages"))
		for i := range chain {
			chain[i] = user("said")
			chain[i].ID = uuid.Must(uuid.NewV7())
		}
		add := func(chain []tree.NewMessage, opts ...tree.AppendOption) ([]tree.Message, bool, error) {
			if len(chain) == 1 {
				m, created, err := s.Append(t.Context(), c.ID, uuid.Nil, chain[0], opts...)
				return []tree.Message{m}, created, err
			}
			return s.AppendChain(t.Context(), c.ID, uuid.Nil, chain, opts...)
		}
		stored, created, err := add(chain, tree.AtHead())
		if err != nil || !created {
			r.Fatal(created, err)
		}
		switch rapid.IntRange(0, 2).Draw(r, "meanwhile") {
		case 1:
			mustAppend(t, s, c.ID, stored[0].ID, user("after"))
		case 2:
			mustAppend(t, s, c.ID, uuid.Nil, user("another root"))
		}
		head, err := s.Head(t.Context(), c.ID)
		if err != nil {
			r.Fatal(err)
		}
		again, created, err := add(chain, tree.AtHead())
		if err != nil || created || len(again) != len(stored) || again[0].ID != stored[0].ID || again[0].ParentID != stored[0].ParentID {
			r.Fatalf("sent again: %+v, created %t, %v", again, created, err)
		}
		if now, err := s.Head(t.Context(), c.ID); err != nil || now != head {
			r.Fatalf("the head moved from %s to %s, %v", head, now, err)
		}
		other := append([]tree.NewMessage(nil), chain...)
		last := user("something else")
		last.ID = chain[len(chain)-1].ID
		other[len(other)-1] = last
		if _, _, err := add(other, tree.AtHead()); !errors.Is(err, fault.Conflict) {
			r.Fatalf("other content: %v", err)
		}
		if stored[0].ParentID != uuid.Nil {
			if _, _, err := add(chain); !errors.Is(err, fault.Conflict) {
				r.Fatalf("as a root: %v", err)
			}
		}
	})
}

// TestIfHead holds that an append which is bound to the active head stores nothing once
// another message is the head, and finds what it stored before.
func TestIfHead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	first := user("first")
	first.ID = uuid.New()
	if _, created, err := s.Append(t.Context(), c.ID, uuid.Nil, first, tree.IfHead(uuid.Nil)); !created || err != nil {
		t.Fatal(created, err)
	}
	second := []tree.NewMessage{user("second"), user("third")}
	chain, _, err := s.AppendChain(t.Context(), c.ID, first.ID, second, tree.IfHead(first.ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, saw := range []uuid.UUID{uuid.Nil, first.ID, chain[0].ID} {
		if _, _, err := s.AppendChain(t.Context(), c.ID, saw, second, tree.IfHead(saw)); !errors.Is(err, fault.Conflict) || fault.Of(err).Code != "changed_meanwhile" {
			t.Errorf("with the head %s before: %v", saw, err)
		}
	}
	if m, created, err := s.Append(t.Context(), c.ID, uuid.Nil, first, tree.IfHead(uuid.Nil)); created || m.ID != first.ID || err != nil {
		t.Errorf("what is stored already gives %s, %v, %v", m.ID, created, err)
	}
	if got, err := s.Conversation(t.Context(), c.ID); err != nil || got.HeadID != chain[1].ID {
		t.Errorf("the head is %s: %v", got.HeadID, err)
	}
}
