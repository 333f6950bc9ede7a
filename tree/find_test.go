package tree_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A conversation is found by its id, the beginning of its id, its title, or a part
// of its title. Ids win, then whole titles, and another tenant's are not found.
func TestFindConversation(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	create := func(s *tree.Store, id, title string) {
		t.Helper()
		if _, _, err := s.CreateConversation(t.Context(), tree.NewConversation{ID: uuid.MustParse(id), Title: title}); err != nil {
			t.Fatal(err)
		}
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

// Nodes are found by the beginning of an id in their conversation alone.
func TestFindNodes(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c, other := newConversation(t, s), newConversation(t, s)
	id := func(n int) uuid.UUID { return uuid.MustParse(fmt.Sprintf("01990000-0007-7000-8000-%012x", n)) }
	add := func(conversation, parent uuid.UUID, n int) {
		m := user("hello")
		m.ID = id(n)
		mustAppend(t, s, conversation, parent, m)
	}
	add(c.ID, uuid.Nil, 0xa1)
	add(c.ID, id(0xa1), 0xa2)
	add(other.ID, uuid.Nil, 0xa3)
	summary, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{
		ID: id(0xb1), AnchorID: id(0xa1), Body: said(tree.RoleUser, "What was said."),
		Range: tree.SummaryRange{LastSummarizedID: id(0xa1), Model: "a test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for beginning, want := range map[string][]uuid.UUID{
		id(0xa1).String(): {id(0xa1)}, "01990000-0007-7000-8000-0000000000A": {id(0xa1), id(0xa2)},
		"0199": {id(0xa1), id(0xa2), id(0xb1)}, "019900000007700080000000000000b": {id(0xb1)}, id(0xa3).String(): nil, "019": nil, "hello": nil,
	} {
		got, err := s.FindNodes(t.Context(), c.ID, beginning)
		var ids []uuid.UUID
		for _, n := range got {
			if ids = append(ids, n.ID); n.ID == summary.ID != (n.Kind == tree.KindSummary) || n.Kind == tree.KindSummary != (n.Summary != nil) {
				t.Errorf("%q: %+v", beginning, n)
			}
		}
		if err != nil || fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%q: %v, %v; want %v", beginning, ids, err, want)
		}
	}
	if got, err := s.ForTenant("other").FindNodes(t.Context(), c.ID, "0199"); err != nil || len(got) > 0 {
		t.Errorf("another tenant finds %d nodes, %v", len(got), err)
	}
}

// A branch is streamed from its oldest message, by its head or as the active
// one, as a transcript has it.
func TestBranch(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c, empty := newConversation(t, s), newConversation(t, s)
	parent := uuid.Nil
	for i := range 7 {
		parent = mustAppend(t, s, c.ID, parent, user(fmt.Sprint("message ", i))).ID
		mustAppend(t, s, c.ID, parent, tree.NewMessage{Body: said(tree.RoleUser, "a sibling"), Metadata: []byte(`{"n":1}`)})
	}
	head := mustAppend(t, s, c.ID, parent, user("the last")).ID
	page, err := s.Transcript(t.Context(), c.ID, head, tree.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context, s *tree.Store, conversation, head uuid.UUID, limit int) (out []tree.Message, err error) {
		for m, err := range s.Branch(ctx, conversation, head, limit) {
			if err != nil {
				return out, err
			}
			out = append(out, m)
		}
		return out, nil
	}
	for _, ref := range []uuid.UUID{head, uuid.Nil} {
		for _, limit := range []int{0, 1, 3, len(page.Data), len(page.Data) + 1} {
			want := page.Data
			if limit > 0 {
				want = want[max(0, len(want)-limit):]
			}
			if got, err := read(t.Context(), s, c.ID, ref, limit); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("head %s, limit %d: %d messages, %v; want %d", ref, limit, len(got), err, len(want))
			}
		}
	}
	for m, err := range s.Branch(t.Context(), c.ID, head, 0) { // a reader may leave
		if err != nil || m.ParentID != uuid.Nil {
			t.Fatalf("%s, %v", m.ID, err)
		}
		break
	}
	for what, test := range map[string]struct {
		s            *tree.Store
		conversation uuid.UUID
		head         uuid.UUID
		code         string
	}{
		"no conversation":    {s, uuid.New(), uuid.Nil, "conversation_not_found"},
		"another tenant's":   {s.ForTenant("other"), c.ID, head, "conversation_not_found"},
		"no message":         {s, c.ID, uuid.New(), "message_not_found"},
		"no message at all":  {s, empty.ID, uuid.Nil, "no_active_head"},
		"another one's head": {s, empty.ID, head, "message_not_found"},
	} {
		if got, err := read(t.Context(), test.s, test.conversation, test.head, 0); len(got) > 0 || codeOf(err) != test.code {
			t.Errorf("%s: %d messages, %v", what, len(got), err)
		}
	}
}

// codeOf is the code of an error that says what to mend.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.Of(err).Code
}
