package tree_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

func activeHead(t *testing.T, s *tree.Store, id uuid.UUID) uuid.UUID {
	t.Helper()
	c, err := s.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c.HeadID
}

func setHead(t *testing.T, s *tree.Store, id, head uuid.UUID) {
	t.Helper()
	if _, err := s.UpdateConversation(t.Context(), id, tree.ConversationUpdate{HeadID: head}); err != nil {
		t.Fatal(err)
	}
}

// A prune that takes the active head along moves it to the newest leaf below
// the pruned message's parent, or to the newest leaf of the tree where a root
// was pruned. Any other prune leaves the head where it is. The newest message
// by time is neither the deepest, nor the last one stored, nor a leaf.
func TestPruneLandsOnTheNewestLeafBelowTheParent(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for _, test := range []struct {
		name, prune, head, want string
	}{
		{"the head itself", "a2", "a2", "a3"},
		{"above the head", "a", "a2x", "b1"},
		{"a root with the head", "root", "b2", "other leaf"},
		{"the other root with the head", "other", "other leaf", "a3"},
		{"the last child of a parent", "b1x", "b1x", "b1"},
		{"a leaf beside newer ones", "b2", "b2", "b1x"},
		{"not the head's branch", "a", "b2", "b2"},
		{"below the head", "a2x", "a2", "a2"},
		{"a sibling of the head", "a2", "a1", "a1"},
	} {
		c := newConversation(t, s)
		ids := map[string]uuid.UUID{"": uuid.Nil}
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, m := range []struct {
			name, parent string
			minute       int
		}{
			{"root", "", 0},
			{"a", "root", 1}, {"a1", "a", 7}, {"a2", "a", 40}, {"a3", "a", 30}, {"a2x", "a2", 8},
			{"b", "root", 2}, {"b1", "b", 50}, {"b2", "b", 9}, {"b1x", "b1", 20},
			{"other", "", 60}, {"other leaf", "other", 10},
		} {
			n := user(m.name)
			n.CreatedAt = begin.Add(time.Duration(m.minute) * time.Minute)
			ids[m.name] = mustAppend(t, s, c.ID, ids[m.parent], n).ID
		}
		// "above the head" prunes a whole side: what is left below root is b's.
		want := ids[test.want]
		if test.name == "above the head" {
			want = ids["b1x"]
		}
		setHead(t, s, c.ID, ids[test.head])
		pruned, err := s.Prune(t.Context(), c.ID, ids[test.prune])
		if err != nil {
			t.Fatal(err)
		}
		if got := activeHead(t, s, c.ID); got != want || pruned.HeadID != want {
			for name, id := range ids {
				if id == got {
					t.Errorf("%s: the head landed on %q", test.name, name)
				}
			}
			t.Errorf("%s: the head is %s and the answer says %s, want %q", test.name, got, pruned.HeadID, test.want)
		}
	}
}

// A client that sends an append again, because it heard no answer, doesn't
// move the active head: the user may have switched to another branch since.
func TestRetryLeavesTheActiveHead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, raw(calling)).ID
	elsewhere := mustAppend(t, s, c.ID, uuid.Nil, user("elsewhere")).ID
	appends := func(n tree.NewMessage) func() (bool, error) {
		return func() (bool, error) { _, created, err := s.Append(t.Context(), c.ID, root, n); return created, err }
	}
	chain := []tree.NewMessage{
		{ID: uuid.New(), Body: []byte(`{"role":"tool","tool_call_id":"b","content":"x"}`)}, {ID: uuid.New(), Body: said(tree.RoleUser, "x")},
	}
	for _, test := range []struct {
		name string
		head uuid.UUID // after the first time
		send func() (created bool, err error)
	}{
		{"a message", chain[1].ID, nil},
		{"a tool's result", chain[0].ID, nil},
		{"a chain", chain[1].ID, func() (bool, error) {
			_, created, err := s.AppendChain(t.Context(), c.ID, root, chain)
			return created, err
		}},
	} {
		if test.send == nil {
			n := tree.NewMessage{ID: uuid.New(), Body: said(tree.RoleUser, test.name)}
			if test.name == "a tool's result" {
				n.Body = []byte(`{"role":"tool","tool_call_id":"a","content":"x"}`)
			}
			test.send, test.head = appends(n), n.ID
		}
		if created, err := test.send(); err != nil || !created {
			t.Fatalf("%s: created %t, %v", test.name, created, err)
		}
		if got := activeHead(t, s, c.ID); got != test.head {
			t.Errorf("%s: the head is %s after the first time, want %s", test.name, got, test.head)
		}
		setHead(t, s, c.ID, elsewhere)
		before := counts(t, s, c.ID)
		for range 2 {
			if created, err := test.send(); err != nil || created {
				t.Fatalf("%s again: created %t, %v", test.name, created, err)
			}
		}
		if after := counts(t, s, c.ID); after != before {
			t.Errorf("%s again changed the conversation\nfrom %s\nto   %s", test.name, before, after)
		}
	}
}

// An append that is to leave the active head alone does so.
func TestKeepHead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	head := mustAppend(t, s, c.ID, uuid.Nil, user("head")).ID
	if _, _, err := s.Append(t.Context(), c.ID, head, user("beside"), tree.KeepHead()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AppendChain(t.Context(), c.ID, head, []tree.NewMessage{user("a"), user("chain")}, tree.KeepHead()); err != nil {
		t.Fatal(err)
	}
	if got := activeHead(t, s, c.ID); got != head {
		t.Errorf("the head is %s, want %s", got, head)
	}
	chain, _, err := s.AppendChain(t.Context(), c.ID, head, []tree.NewMessage{user("a"), user("chain")})
	if err != nil {
		t.Fatal(err)
	}
	if got := activeHead(t, s, c.ID); got != chain[1].ID {
		t.Errorf("the head is %s after a chain, want its last message, %s", got, chain[1].ID)
	}
}
