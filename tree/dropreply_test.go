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

// A reply is deleted whose answer could not be stored, and is left in its checkpoint:
// nothing of it is stored after that. One whose answer came to be stored stays for
// Retract.
func TestDropReply(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	answer := func(c tree.Checkpoint, _ json.RawMessage) (tree.NewMessage, uuid.UUID) {
		return tree.NewMessage{ID: c.MessageID, Body: raw(`{"role":"assistant","content":"` + c.Content + `"}`).Body}, c.ParentID
	}
	if _, err := s.ForTenant("other").DropReply(t.Context(), c.ID, uuid.New()); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	for _, drops := range []bool{true, false} {
		id := uuid.New()
		if err := s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: asked.ID, ServerID: "a", Model: "m", Content: "said"}, nil, false); err != nil {
			t.Fatal(err)
		}
		if drops {
			if answer, err := s.DropReply(t.Context(), c.ID, id); answer != nil || err != nil {
				t.Fatal(answer, err)
			}
		}
		listed, err := s.Checkpoints(t.Context())
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		if _, stored, err := s.TakeCheckpoint(t.Context(), listed[0], answer); err != nil || stored == drops {
			t.Errorf("deleted %t: it is stored: %t, %v", drops, stored, err)
		}
		if _, err := s.Message(t.Context(), c.ID, id); errors.Is(err, fault.NotFound) != drops {
			t.Errorf("deleted %t: %v", drops, err)
		}
		if !drops {
			if m, err := s.DropReply(t.Context(), c.ID, id); err != nil || m == nil || m.ID != id {
				t.Errorf("%+v, %v, want the answer that was stored", m, err)
			}
		}
		if deleted, err := s.Retracted(t.Context(), c.ID, id); err != nil || deleted != drops {
			t.Errorf("deleted %t: it is told: %t, %v", drops, deleted, err)
		}
	}
}

// TestDropReplyTakesTurns deletes a reply while another server stores what was saved of
// it: the second of the two knows of the first.
func TestDropReplyTakesTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	for _, dropFirst := range []bool{true, false} {
		id := uuid.New()
		if err := s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: asked.ID, ServerID: "a", Model: "m", Content: "said"}, nil, false); err != nil {
			t.Fatal(err)
		}
		listed, err := s.Checkpoints(t.Context())
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		var answer *tree.Message
		var stored bool
		drop := func(s *tree.Store) (err error) {
			answer, err = s.DropReply(t.Context(), c.ID, id)
			return err
		}
		take := func(s *tree.Store) (err error) {
			_, stored, err = s.TakeCheckpoint(t.Context(), listed[0], func(c tree.Checkpoint, _ json.RawMessage) (tree.NewMessage, uuid.UUID) {
				return tree.NewMessage{ID: c.MessageID, Body: raw(`{"role":"assistant","content":"said"}`).Body}, c.ParentID
			})
			return err
		}
		first, second := take, drop
		if dropFirst {
			first, second = drop, take
		}
		if err := meanwhile(t, pool, first, func() error { return second(s) }); err != nil {
			t.Fatal(err)
		}
		deleted, err := s.Retracted(t.Context(), c.ID, id)
		if err != nil || stored == dropFirst || deleted != dropFirst || (answer == nil) != dropFirst {
			t.Errorf("deleted first %t: it is stored %t and marked as deleted %t, and the deletion found %v: %v", dropFirst, stored, deleted, answer, err)
		}
	}
}
