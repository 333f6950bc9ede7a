package tree_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// An append that expects a head moves it from there only, alone or as a chain.
func TestMoveHeadFrom(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	other := mustAppend(t, s, c.ID, uuid.Nil, user("other"))
	for name, add := range map[string]func(opts ...tree.AppendOption) (uuid.UUID, error){
		"a message": func(opts ...tree.AppendOption) (uuid.UUID, error) {
			m, _, err := s.Append(t.Context(), c.ID, root.ID, user("answer"), opts...)
			return m.ID, err
		},
		"a chain": func(opts ...tree.AppendOption) (uuid.UUID, error) {
			ms, _, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("answer"), user("more")}, opts...)
			if err != nil {
				return uuid.Nil, err
			}
			return ms[1].ID, nil
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
			if _, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: test.active}); err != nil {
				t.Fatal(err)
			}
			added, err := add(test.opts...)
			if err != nil {
				t.Fatal(err)
			}
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
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	var answers []uuid.UUID
	for range 2 {
		question, _, err := s.Append(t.Context(), c.ID, uuid.Nil, user("question"), tree.KeepHead())
		if err != nil {
			t.Fatal(err)
		}
		if head := activeHead(t, s, c.ID); len(answers) == 0 && head != uuid.Nil {
			t.Errorf("the head is %s before there is an answer", head)
		}
		answer, _, err := s.Append(t.Context(), c.ID, question.ID, raw(`{"role":"assistant","content":"answer"}`), tree.MoveHeadFrom(uuid.Nil))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer.ID)
	}
	if head := activeHead(t, s, c.ID); head != answers[0] {
		t.Errorf("the head is %s, want the first answer %s", head, answers[0])
	}
}
