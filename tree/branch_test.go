package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// A page of a branch, and its streamed end, are that part of the transcript, in any tree.
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
		got, more, err := s.Histories().BranchFrom(t.Context(), c.ID, head, from, limit)
		at := slices.Index(branch, from)
		if from == uuid.Nil {
			at = 0
		}
		if at < 0 {
			check.Need(rt, errors.Is(err, fault.NotFound), "a message of another branch begins a page: %d messages, %v", len(got), err)
			return
		}
		noError(rt, err)
		end := gather(rt, s.Branch(t.Context(), c.ID, head, limit)) // streamed, the newest alone
		check.Need(rt, fmt.Sprint(end) == fmt.Sprint(whole.Data[max(0, len(branch)-limit):]), "the last %d messages are %+v", limit, end)
		want := branch[at:min(at+limit, len(branch))]
		check.Need(rt, more == (at+limit < len(branch)) &&
			slices.EqualFunc(got, want, func(m tree.Message, id uuid.UUID) bool { return m.ID == id && len(m.Body) > 0 }),
			"%d messages from %s, want %v", len(got), from, want)
	})
	empty := newConversation(t, s)
	refused(t, "an empty conversation has a branch", third(s.Histories().BranchFrom(t.Context(), empty.ID, uuid.Nil, uuid.Nil, 1)), fault.NotFound)
	refused(t, "an empty conversation is streamed", func() error {
		for _, err := range s.Branch(t.Context(), empty.ID, uuid.Nil, 0) {
			return err
		}
		return nil
	}(), fault.NotFound)
}

// A leaf's prune moves the head to the parent. A message that others hang below stays.
func TestPruneLeaf(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	leaf := mustAppend(t, s, c.ID, root.ID, user("leaf"))
	sibling := mustAppend(t, s, c.ID, root.ID, user("newer sibling"))
	setHead(t, s, c.ID, leaf.ID)
	for name, id := range map[string]uuid.UUID{"has_children": root.ID, "message_not_found": uuid.New()} {
		_, err := s.Histories().PruneLeaf(t.Context(), c.ID, id, uuid.Nil)
		check.That(t, err != nil && fault.Of(err).Code == name, "%v, want %s", err, name)
	}
	p, err := s.Histories().PruneLeaf(t.Context(), c.ID, leaf.ID, uuid.Nil)
	check.That(t, err == nil && p == (tree.Pruned{Messages: 1, HeadID: root.ID}) && activeHead(t, s, c.ID) == root.ID,
		"%+v, %v; the head is to be the parent %s", p, err, root.ID)
	other := mustAppend(t, s, c.ID, root.ID, user("head"))
	check.Equal(t, "the head, the sibling", must(s.Histories().PruneLeaf(t.Context(), c.ID, other.ID, sibling.ID))(t).HeadID, sibling.ID)
	setHead(t, s, c.ID, root.ID)
	check.Equal(t, "the head that stays", must(s.Histories().PruneLeaf(t.Context(), c.ID, sibling.ID, uuid.Nil))(t).HeadID, root.ID)
	check.Equal(t, "the head of nothing", must(s.Histories().PruneLeaf(t.Context(), c.ID, root.ID, uuid.Nil))(t).HeadID, uuid.Nil)
}

// The end of the active branch is replaced under one lock. The former message goes, unless others hang below.
func TestReplaceEnd(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	step := mustAppend(t, s, c.ID, root.ID, user("step"))
	leaf := mustAppend(t, s, c.ID, step.ID, user("leaf"))
	replace := func(head, id uuid.UUID, by ...tree.NewMessage) error {
		return s.Histories().ReplaceEnd(t.Context(), c.ID, head, id, by, func(m tree.Message) bool { return m.ID == step.ID })
	}
	count := func(want int, head uuid.UUID) {
		t.Helper()
		got := must(s.Conversation(t.Context(), c.ID))(t)
		check.Equal(t, "messages", got.MessageCount(), want)
		check.That(t, head == uuid.Nil || got.HeadID == head, "the head is %s, want %s", got.HeadID, head)
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

// Conversations are found by id, its beginning, title or a part of it, in this order, in their tenant.
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
		check.That(t, err == nil && fmt.Sprint(ids) == fmt.Sprint(want), "%q: %v, %v; want %v", name, ids, err, want)
	}
	for range 2 * tree.MostFound {
		create(s, uuid.NewString(), "many")
	}
	got, err := s.FindConversation(t.Context(), "many")
	check.That(t, err == nil && len(got) == tree.MostFound, "%d conversations of one title, %v", len(got), err)
}

// The pages of every list end at tree.MaxPageBytes, and together give every row once.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	large := strings.Repeat("  .", 300<<10)
	thought := tree.NewMessage{Message: chat.Read(said(tree.RoleAssistant, "Hm.")), Reasoning: strings.Repeat("x", 500<<10)} // counted and indexed sooner
	var roots, children, chain, ran, conversations []uuid.UUID

	forest, line, lists := newConversation(t, s).ID, newConversation(t, s).ID, s.ForTenant("lists")
	question := must(s.Append(t.Context(), line, uuid.Nil, user("Which tree?"), tree.WithPathHash()))(t).ID
	for range 12 {
		roots = append(roots, mustAppend(t, s, forest, uuid.Nil, thought).ID)
	}
	for i := range 6 {
		answer := tree.NewMessage{Message: chat.Read(said(tree.RoleAssistant, fmt.Sprint("hazel ", i, large))), Metadata: json.RawMessage(`{"n":1}`)}
		children = append(children, mustAppend(t, s, line, question, answer).ID)
		k := must(s.Summaries().Record(t.Context(), tree.Compaction{
			ConversationID: line, ID: uuid.New(), HeadID: question, Trigger: "request", Outcome: tree.OutcomeNoGain,
			Settings: json.RawMessage("{}"), Attempts: json.RawMessage(`["` + large + `"]`),
		}, nil))(t)
		ran = append(ran, k.ID)
	}
	whole := newConversation(t, s).ID
	for _, m := range must(s.AppendChain(t.Context(), whole, uuid.Nil, slices.Repeat([]tree.NewMessage{thought}, 12)))(t).Messages {
		chain = append(chain, m.ID)
	}
	metadata := json.RawMessage(`{"of":"` + strings.Repeat("x", 60<<10) + `"}`)
	for range 80 {
		c := must3(lists.CreateConversation(t.Context(), tree.NewConversation{Title: "beech", Metadata: metadata}))(t)
		conversations = append(conversations, c.ID)
	}

	idOf := func(m tree.Message) uuid.UUID { return m.ID }
	backwards := func(ids []uuid.UUID) []uuid.UUID {
		ids = slices.Clone(ids)
		slices.Reverse(ids)
		return ids
	}
	for name, list := range map[string]struct {
		want []uuid.UUID
		rows int // of a page, which the bytes end
		page func(tree.Paging) (ids []uuid.UUID, next string, err error)
	}{
		"roots": {roots, 9, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOf)(s.Children(t.Context(), forest, uuid.Nil, p))
		}},
		"children": {children, 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOf)(s.Children(t.Context(), line, question, p))
		}},
		"branches": {backwards(children), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOf)(s.Branches(t.Context(), line, p))
		}},
		"transcript": {backwards(chain), 9, func(p tree.Paging) ([]uuid.UUID, string, error) {
			ids, next, err := pageOf(idOf)(s.Transcript(t.Context(), whole, uuid.Nil, p))
			return backwards(ids), next, err
		}},
		"branch": {chain, 9, func(p tree.Paging) (ids []uuid.UUID, next string, err error) {
			messages, more, err := s.Histories().BranchFrom(t.Context(), whole, uuid.Nil, or(p.Cursor, chain[0]), p.Limit)
			for _, m := range messages {
				ids = append(ids, m.ID)
			}
			if more { // a page begins with a message of the one before
				next, ids = ids[len(ids)-1].String(), ids[:len(ids)-1]
				return append(ids, uuid.Nil), next, err
			}
			return ids, "", err
		}},
		"search": {backwards(children), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			page, err := find(t.Context(), s, "hazel", uuid.Nil, p)
			return pageOf(idOfHit)(page.Page, err)
		}},
		"ranked": {backwards(children), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			page, err := newSearch().Ranked(t.Context(), s, "hazel", search.Within{ConversationID: line}, p)
			return pageOf(idOfHit)(page.Page, err)
		}},
		"compactions": {backwards(ran), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(func(k tree.Compaction) uuid.UUID { return k.ID })(s.Summaries().Compactions(t.Context(), line, p))
		}},
		"conversations": {backwards(conversations), 69, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOfConversation)(lists.Conversations(t.Context(), tree.ConversationFilter{}, p))
		}},
		"conversations by a query": {backwards(conversations), 69, func(p tree.Paging) ([]uuid.UUID, string, error) {
			page, _, err := newSearch().Conversations(t.Context(), lists, tree.ConversationFilter{Query: "beech"}, p)
			return pageOf(idOfConversation)(page, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uuid.UUID
			for p := (tree.Paging{Limit: 100}); ; {
				ids, next, err := list.page(p)
				noError(t, err)
				rest := len(list.want) - len(got)
				check.Need(t, len(ids) == min(list.rows, rest), "a page has %d of %d rows", len(ids), rest)
				got = append(got, slices.DeleteFunc(ids, func(id uuid.UUID) bool { return id == uuid.Nil })...)
				if p.Cursor = next; next == "" {
					break
				}
			}
			check.That(t, slices.Equal(got, list.want), "the pages have %v, want %v", got, list.want)
		})
	}
}

func idOfHit(h tree.Hit) uuid.UUID                   { return h.Message.ID }
func idOfConversation(c tree.Conversation) uuid.UUID { return c.ID }

// pageOf gives the ids of a page, and its cursor.
func pageOf[T any](id func(T) uuid.UUID) func(tree.Page[T], error) ([]uuid.UUID, string, error) {
	return func(page tree.Page[T], err error) (ids []uuid.UUID, next string, _ error) {
		for _, row := range page.Data {
			ids = append(ids, id(row))
		}
		return ids, page.Next, err
	}
}

func or(id string, first uuid.UUID) uuid.UUID {
	if id == "" {
		return first
	}
	return uuid.MustParse(id)
}
