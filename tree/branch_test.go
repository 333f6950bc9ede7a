package tree_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// TestBranchFrom holds that a page of a branch, and its streamed end, are the part of the
// transcript that is asked for, in any tree, and that nothing of another branch comes.
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
		whole := must(s.Transcript(t.Context(), c.ID, head, tree.Paging{Limit: 100}))(rt)
		branch := make([]uuid.UUID, len(whole.Data))
		for i, m := range whole.Data {
			branch[i] = m.ID
		}
		from, limit := rapid.SampledFrom(ids).Draw(rt, "from"), rapid.IntRange(1, 5).Draw(rt, "limit")
		got, more, err := s.BranchFrom(t.Context(), c.ID, head, from, limit)
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
		noError(rt, err)
		end := gather(rt, s.Branch(t.Context(), c.ID, head, limit)) // streamed, the newest alone
		if fmt.Sprint(end) != fmt.Sprint(whole.Data[max(0, len(branch)-limit):]) {
			rt.Fatalf("the last %d messages are %+v", limit, end)
		}
		want := branch[at:min(at+limit, len(branch))]
		if more != (at+limit < len(branch)) || !slices.EqualFunc(got, want, func(m tree.Message, id uuid.UUID) bool { return m.ID == id && len(m.Body) > 0 }) {
			rt.Fatalf("%d messages from %s, want %v", len(got), from, want)
		}
	})
	empty := newConversation(t, s)
	refused(t, "an empty conversation has a branch", third(s.BranchFrom(t.Context(), empty.ID, uuid.Nil, uuid.Nil, 1)), fault.NotFound)
	refused(t, "an empty conversation is streamed", func() error {
		for _, err := range s.Branch(t.Context(), empty.ID, uuid.Nil, 0) {
			return err
		}
		return nil
	}(), fault.NotFound)
}

// A leaf's prune moves the head to the parent, whatever else hangs there. A
// message that others hang below stays.
func TestPruneLeaf(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	leaf := mustAppend(t, s, c.ID, root.ID, user("leaf"))
	sibling := mustAppend(t, s, c.ID, root.ID, user("newer sibling"))
	setHead(t, s, c.ID, leaf.ID)
	for name, id := range map[string]uuid.UUID{"has_children": root.ID, "message_not_found": uuid.New()} {
		if _, err := s.PruneLeaf(t.Context(), c.ID, id, uuid.Nil); err == nil || fault.Of(err).Code != name {
			t.Errorf("%v, want %s", err, name)
		}
	}
	p, err := s.PruneLeaf(t.Context(), c.ID, leaf.ID, uuid.Nil)
	if err != nil || p != (tree.Pruned{Messages: 1, HeadID: root.ID}) || activeHead(t, s, c.ID) != root.ID {
		t.Errorf("%+v, %v; the head is to be the parent %s", p, err, root.ID)
	}
	other := mustAppend(t, s, c.ID, root.ID, user("head"))
	if p, err = s.PruneLeaf(t.Context(), c.ID, other.ID, sibling.ID); err != nil || p.HeadID != sibling.ID {
		t.Errorf("%+v, %v; the head is to be the sibling %s", p, err, sibling.ID)
	}
	setHead(t, s, c.ID, root.ID)
	if p, err = s.PruneLeaf(t.Context(), c.ID, sibling.ID, uuid.Nil); err != nil || p.HeadID != root.ID {
		t.Errorf("%+v, %v; the head stays", p, err)
	}
	if p, err = s.PruneLeaf(t.Context(), c.ID, root.ID, uuid.Nil); err != nil || p.HeadID != uuid.Nil {
		t.Errorf("%+v, %v; nothing is left", p, err)
	}
}

// The end of the active branch is replaced under one lock: the former message goes,
// unless others hang below it.
func TestReplaceEnd(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	step := mustAppend(t, s, c.ID, root.ID, user("step"))
	leaf := mustAppend(t, s, c.ID, step.ID, user("leaf"))
	replace := func(head, id uuid.UUID, by ...tree.NewMessage) error {
		return s.ReplaceEnd(t.Context(), c.ID, head, id, by, func(m tree.Message) bool { return m.ID == step.ID })
	}
	count := func(want int, head uuid.UUID) {
		t.Helper()
		if got, err := s.Conversation(t.Context(), c.ID); err != nil || got.MessageCount() != want || head != uuid.Nil && got.HeadID != head {
			t.Errorf("%d messages, and the head is %s, %v; want %d, %s", got.MessageCount(), got.HeadID, err, want, head)
		}
	}
	refused(t, "another head", replace(root.ID, root.ID), fault.Conflict)
	noError(t, replace(leaf.ID, leaf.ID, user("other leaf")))
	count(3, uuid.Nil)
	noError(t, replace(activeHead(t, s, c.ID), activeHead(t, s, c.ID))) // and the step above it
	count(1, root.ID)
	below := mustAppend(t, s, c.ID, root.ID, user("below"))
	noError(t, replace(below.ID, root.ID, user("other root"), user("again")))
	count(4, uuid.Nil)
	setHead(t, s, c.ID, root.ID)
	refused(t, "a root below which are others", replace(root.ID, root.ID), fault.Conflict)
}

// A conversation is found by its id, the beginning of its id, its title, or a part
// of its title. Ids win, then whole titles, and another tenant's are not found.
func TestFindConversation(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	create := func(s *tree.Store, id, title string) {
		t.Helper()
		must3(s.CreateConversation(t.Context(), tree.NewConversation{ID: uuid.MustParse(id), Title: title}))(t)
	}
	const a, b, c, d, foreign = "01990000-0007-7000-8000-00000000abcd", "01990000-0007-7000-8000-00000000abce",
		"01990000-0008-7000-8000-000000000000", "ffffffff-0000-7000-8000-000000000000", "01990000-0009-7000-8000-000000000000"
	create(s, a, "trees")
	create(s, b, "0199")
	create(s, c, "trees")
	create(s, d, "0199ab")
	create(s.ForTenant("other"), foreign, "trees")
	const part = "eeeeeeee-0000-7000-8000-000000000000"
	create(s, part, "All of my trees")
	for name, want := range map[string][]string{
		a: {a}, "01990000-0007-7000-8000-00000000ABCD": {a}, "0199000000077000800000000000abce": {b}, "{" + a + "}": {a},
		"0199": {c, b, a}, "01990000-0007": {b, a}, "019900000007": {b, a}, "01990000-00": {c, b, a}, "0199-0000": nil,
		"trees": {c, a}, "Trees": {part, c, a}, "REE": {part, c, a}, "OF MY": {part}, "tr%s": nil, "tr__s": nil, "0199ab": {d}, "ffff": {d}, foreign: nil, "01990000-0009": nil,
		"019": {d, b}, "0199A": {d}, "": nil, "no title": nil, "----": nil, "0199\x00": nil, "\xff\xff\xff\xff": nil, a + "0": nil,
	} {
		got, err := s.FindConversation(t.Context(), name)
		var ids []string
		for _, c := range got {
			ids = append(ids, c.ID.String())
		}
		if err != nil || fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%q: %v, %v; want %v", name, ids, err, want)
		}
	}
	for range 2 * tree.MostFound {
		create(s, uuid.NewString(), "many")
	}
	if got, err := s.FindConversation(t.Context(), "many"); err != nil || len(got) != tree.MostFound {
		t.Errorf("%d conversations of one title, %v", len(got), err)
	}
}
