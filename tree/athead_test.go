package tree_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
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
				m, err := s.Append(t.Context(), c.ID, uuid.Nil, chain[0], opts...)
				return []tree.Message{m.Message}, m.Created, err
			}
			stored, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, chain, opts...)
			return stored.Messages, stored.Created, err
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
		head := must(s.Head(t.Context(), c.ID))(r)
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

// TestAside holds that a client that keeps its history itself is recognized where
// messages that it never saw stand between those that it knows.
func TestAside(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	say := func(role, text string) *chat.Message {
		return must(chat.Parse(json.RawMessage(`{"role":"` + role + `","content":"` + text + `"}`)))(t)
	}
	history := []*chat.Message{say("user", "Which tree?")}
	in := tree.NewConversation{ID: uuid.New()}
	path := must(s.AppendPath(t.Context(), in, tree.History{Messages: history}))(t)
	steps := must(s.AppendChain(t.Context(), in.ID, path.HeadID, []tree.NewMessage{
		{Message: chat.Read([]byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"recall","arguments":"{}"}}]}`))},
		{Message: chat.Read([]byte(`{"role":"tool","tool_call_id":"a","content":"A hazel."}`))},
	}, tree.Auxiliary(), tree.KeepHead()))(t).Messages
	if c, err := s.Conversation(t.Context(), in.ID); err != nil || c.HeadID != path.HeadID {
		t.Errorf("%+v, %v", c, err)
	}
	answer := say("assistant", "A hazel.")
	stored, err := s.Append(t.Context(), in.ID, steps[1].ID, tree.NewMessage{ID: uuid.New(), Message: answer}, tree.Behind(path.HeadID))
	if err != nil || !stored.Created {
		t.Fatal(err)
	}
	if again, err := s.Append(t.Context(), in.ID, steps[1].ID, tree.NewMessage{ID: stored.ID, Message: answer}, tree.Behind(path.HeadID)); err != nil || again.Created || again.ID != stored.ID {
		t.Errorf("%v, %v", again.Created, err)
	}
	if found, err := s.Recognize(t.Context(), in.ID, tree.History{Messages: history}); err != nil || found.HeadID != path.HeadID {
		t.Errorf("the question is %+v, %v", found, err)
	}
	history = append(history, answer)
	if found, err := s.Recognize(t.Context(), in.ID, tree.History{Messages: history}); err != nil || found.HeadID != stored.ID || found.Known != 2 || found.Tokens != stored.PathTokens {
		t.Errorf("the answer is %+v, %v", found, err)
	}
	more, err := s.AppendPath(t.Context(), in, tree.History{Messages: append(history, say("user", "Why?"))})
	if err != nil || more.Known != 2 {
		t.Fatalf("%+v, %v", more, err)
	}
	if m, err := s.Message(t.Context(), in.ID, more.HeadID); err != nil || m.ParentID != stored.ID {
		t.Errorf("%+v, %v", m, err)
	}
	// Below a message without a path hash there is none, and with Behind none is made up.
	plain := must(s.Append(t.Context(), in.ID, steps[1].ID, tree.NewMessage{Message: answer}))(t).Message
	must(s.Append(t.Context(), in.ID, plain.ID, tree.NewMessage{Message: say("user", "And?")}, tree.Behind(plain.ID)))(t)
}

// An append that expects a head moves it from there only, alone or as a chain.
func TestMoveHeadFrom(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	other := mustAppend(t, s, c.ID, uuid.Nil, user("other"))
	for name, add := range map[string]func(opts ...tree.AppendOption) (uuid.UUID, error){
		"a message": func(opts ...tree.AppendOption) (uuid.UUID, error) {
			m, err := s.Append(t.Context(), c.ID, root.ID, user("answer"), opts...)
			return m.ID, err
		},
		"a chain": func(opts ...tree.AppendOption) (uuid.UUID, error) {
			ms, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("answer"), user("more")}, opts...)
			if err != nil {
				return uuid.Nil, err
			}
			return ms.Messages[1].ID, nil
		},
	} {
		for _, test := range []struct {
			active uuid.UUID
			opts   []tree.AppendOption
			moves  bool
		}{
			{root.ID, []tree.AppendOption{tree.MoveHeadFrom(root.ID)}, true},
			{other.ID, []tree.AppendOption{tree.MoveHeadFrom(root.ID)}, false},
			{other.ID, []tree.AppendOption{tree.MoveHeadFrom(other.ID)}, true},
			{root.ID, []tree.AppendOption{tree.MoveHeadFrom(root.ID), tree.KeepHead()}, false},
			{root.ID, nil, true},
			{root.ID, []tree.AppendOption{tree.KeepHead()}, false},
		} {
			must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: test.active}))(t)
			added := must(add(test.opts...))(t)
			want := test.active
			if test.moves {
				want = added
			}
			if got, err := s.Head(t.Context(), c.ID); err != nil || got != want {
				t.Errorf("%s, %d options, moves %t: the head is %s, %v; want %s", name, len(test.opts), test.moves, got, err, want)
			}
		}
	}
}

// A conversation whose head nobody moved yet has none, and the append that
// expects none gives it one.
func TestMoveHeadFromNone(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	var answers []uuid.UUID
	for range 2 {
		question := must(s.Append(t.Context(), c.ID, uuid.Nil, user("question"), tree.KeepHead()))(t).Message
		if head := activeHead(t, s, c.ID); len(answers) == 0 && head != uuid.Nil {
			t.Errorf("the head is %s before there is an answer", head)
		}
		answer := must(s.Append(t.Context(), c.ID, question.ID, raw(`{"role":"assistant","content":"answer"}`), tree.MoveHeadFrom(uuid.Nil)))(t).Message
		answers = append(answers, answer.ID)
	}
	if head := activeHead(t, s, c.ID); head != answers[0] {
		t.Errorf("the head is %s, want the first answer %s", head, answers[0])
	}
}
