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
