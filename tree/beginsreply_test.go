package tree_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestBeginsReply holds that messages and the claim of the reply to them are stored
// together or not at all.
func TestBeginsReply(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	begin := func(server string, reply uuid.UUID, ms ...tree.NewMessage) (bool, error) {
		t.Helper()
		claim := tree.BeginsReply(tree.Checkpoint{ConversationID: c.ID, MessageID: reply, ParentID: ms[len(ms)-1].ID, ServerID: server}, []byte(`{"a":1}`))
		if len(ms) == 1 {
			_, created, err := s.Append(t.Context(), c.ID, uuid.Nil, ms[0], tree.KeepHead(), claim)
			return created, err
		}
		_, created, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, ms, tree.KeepHead(), claim)
		return created, err
	}
	said := func(text string) tree.NewMessage {
		m := user(text)
		m.ID = uuid.New()
		return m
	}
	one, two, reply := said("one"), said("two"), uuid.New()
	for _, ms := range [][]tree.NewMessage{{one}, {two, said("and")}} {
		created, err := begin("a", reply, ms...)
		saved, missing := s.Checkpoint(t.Context(), c.ID, reply)
		state, untold := s.ReplyState(t.Context(), c.ID, reply)
		if !created || err != nil || missing != nil || untold != nil || saved.ServerID != "a" || saved.ParentID != ms[len(ms)-1].ID || string(state.Metadata) != `{"a":1}` {
			t.Errorf("%v %v; %+v %v; %+v %v", created, err, saved, missing, state, untold)
		}
		other := uuid.New()
		if created, err := begin("b", other, ms...); created || err != nil {
			t.Errorf("once more: %v, %v", created, err)
		}
		if _, err := s.Checkpoint(t.Context(), c.ID, other); err == nil {
			t.Error("a reply to messages that were there already is claimed")
		}
		lost := said("lost")
		if _, err := begin("b", reply, lost); !errors.Is(err, tree.ErrReplyLost) {
			t.Errorf("a second server: %v", err)
		}
		if _, err := s.Message(t.Context(), c.ID, lost.ID); err == nil {
			t.Error("a message is stored whose reply another server has")
		}
		if err := s.EndReply(t.Context(), tree.ReplyEnd{ConversationID: c.ID, MessageID: reply, ServerID: "a"}); err != nil {
			t.Fatal(err)
		}
		reply = uuid.New()
	}
	if head := activeHead(t, s, c.ID); head != uuid.Nil {
		t.Errorf("the head is %s", head)
	}
}

// TestEndReplyGivesAHead holds that the end of a reply moves no active head that
// there is, and gives one where there is none and no reply is under way.
func TestEndReplyGivesAHead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for name, test := range map[string]struct {
		headed, running, pruned, leave bool
		want                           func(before, asked, other uuid.UUID) uuid.UUID
	}{
		"none":                  {want: func(_, asked, _ uuid.UUID) uuid.UUID { return asked }},
		"one":                   {headed: true, want: func(before, _, _ uuid.UUID) uuid.UUID { return before }},
		"one that is coming":    {running: true, want: func(_, _, _ uuid.UUID) uuid.UUID { return uuid.Nil }},
		"none, and is pruned":   {pruned: true, want: func(_, _, other uuid.UUID) uuid.UUID { return other }},
		"none, and is to be so": {leave: true, want: func(_, _, _ uuid.UUID) uuid.UUID { return uuid.Nil }},
	} {
		c := newConversation(t, s)
		add := func(text string) uuid.UUID {
			m, _, err := s.Append(t.Context(), c.ID, uuid.Nil, user(text), tree.KeepHead())
			if err != nil {
				t.Fatal(err)
			}
			return m.ID
		}
		var before uuid.UUID
		if test.headed {
			before = mustAppend(t, s, c.ID, uuid.Nil, user("before")).ID
		}
		asked, other := add("asked"), add("other")
		claim := func() uuid.UUID {
			id := uuid.New()
			if err := s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: asked, ServerID: "a"}, nil, true); err != nil {
				t.Fatal(err)
			}
			return id
		}
		end := tree.ReplyEnd{ConversationID: c.ID, MessageID: claim(), HeadID: asked, ServerID: "a", Metadata: []byte(`{}`)}
		if test.running {
			claim()
		}
		if test.pruned {
			if _, err := s.Prune(t.Context(), c.ID, asked); err != nil {
				t.Fatal(err)
			}
		}
		if test.leave {
			end.HeadID = uuid.Nil
		}
		if err := s.ForTenant("another").EndReply(t.Context(), end); err != nil {
			t.Error(err)
		}
		if _, err := s.Checkpoint(t.Context(), c.ID, end.MessageID); err != nil {
			t.Errorf("another tenant ended it: %v", err)
		}
		if err := s.EndReply(t.Context(), end); err != nil {
			t.Error(err)
		}
		if got, want := activeHead(t, s, c.ID), test.want(before, asked, other); got != want {
			t.Errorf("where there is %s: the head is %s, want %s", name, got, want)
		}
		if state, err := s.ReplyState(t.Context(), c.ID, end.MessageID); err != nil || state.State != tree.StateEnded {
			t.Errorf("%+v, %v", state, err)
		}
	}
}
