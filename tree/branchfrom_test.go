package tree_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// TestBranchFrom holds that a page of a branch is the part of the transcript
// that it is asked for, in any tree, and that nothing of another branch comes.
func TestBranchFrom(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	rapid.Check(t, func(rt *rapid.T) {
		c := newConversation(t, s)
		ids := []uuid.UUID{uuid.Nil}
		for range rapid.IntRange(1, 20).Draw(rt, "messages") {
			parent := ids[max(0, len(ids)-1-rapid.IntRange(0, 3).Draw(rt, "up"))]
			ids = append(ids, mustAppend(t, s, c.ID, parent, user("x")).ID)
		}
		head := rapid.SampledFrom(ids).Draw(rt, "head") // uuid.Nil is the active one
		whole, err := s.Transcript(t.Context(), c.ID, head, tree.Paging{Limit: 100})
		if err != nil {
			rt.Fatal(err)
		}
		branch := make([]uuid.UUID, len(whole.Data))
		for i, m := range whole.Data {
			branch[i] = m.ID
		}
		from, limit := rapid.SampledFrom(ids).Draw(rt, "from"), rapid.IntRange(1, 5).Draw(rt, "limit")
		got, err := s.BranchFrom(t.Context(), c.ID, head, from, limit)
		at := slices.Index(branch, from)
		if from == uuid.Nil {
			at = 0
		}
		if at < 0 {
			if !errors.Is(err, fault.NotFound) {
				rt.Fatalf("a message of another branch begins a page: %d messages, %v", len(got), err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		want := branch[at:min(at+limit, len(branch))]
		if !slices.EqualFunc(got, want, func(m tree.Message, id uuid.UUID) bool { return m.ID == id && len(m.Body) > 0 }) {
			rt.Fatalf("%d messages from %s, want %v", len(got), from, want)
		}
	})
	empty := newConversation(t, s)
	if _, err := s.BranchFrom(t.Context(), empty.ID, uuid.Nil, uuid.Nil, 1); !errors.Is(err, fault.NotFound) {
		t.Errorf("an empty conversation has a branch: %v", err)
	}
	if _, err := s.ForTenant("other").BranchFrom(t.Context(), empty.ID, uuid.Nil, uuid.Nil, 1); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant reads a branch: %v", err)
	}
}

// A leaf's prune moves the head to the parent, whatever else hangs there. A
// message that others hang below stays.
func TestPruneLeaf(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	leaf := mustAppend(t, s, c.ID, root.ID, user("leaf"))
	sibling := mustAppend(t, s, c.ID, root.ID, user("newer sibling"))
	setHead(t, s, c.ID, leaf.ID)
	for name, id := range map[string]uuid.UUID{"has_children": root.ID, "message_not_found": uuid.New()} {
		if _, err := s.PruneLeaf(t.Context(), c.ID, id); err == nil || fault.Of(err).Code != name {
			t.Errorf("%v, want %s", err, name)
		}
	}
	p, err := s.PruneLeaf(t.Context(), c.ID, leaf.ID)
	if err != nil || p != (tree.Pruned{Messages: 1, HeadID: root.ID}) || activeHead(t, s, c.ID) != root.ID {
		t.Errorf("%+v, %v; the head is to be the parent %s", p, err, root.ID)
	}
	if p, err = s.PruneLeaf(t.Context(), c.ID, sibling.ID); err != nil || p.HeadID != root.ID {
		t.Errorf("%+v, %v; the head stays", p, err)
	}
	if p, err = s.PruneLeaf(t.Context(), c.ID, root.ID); err != nil || p.HeadID != uuid.Nil {
		t.Errorf("%+v, %v; nothing is left", p, err)
	}
}
