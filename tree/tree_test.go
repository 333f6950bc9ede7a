package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// said is a message body.
func said(role tree.Role, text string) json.RawMessage {
	body, err := json.Marshal(map[string]string{"role": string(role), "content": text})
	if err != nil {
		panic(err)
	}
	return body
}

func user(text string) tree.NewMessage { return tree.NewMessage{Body: said(tree.RoleUser, text)} }

func raw(body string) tree.NewMessage { return tree.NewMessage{Body: json.RawMessage(body)} }

func newConversation(t testing.TB, s *tree.Store) tree.Conversation {
	t.Helper()
	c, _, err := s.CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustAppend(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, m tree.NewMessage) tree.Message {
	t.Helper()
	got, _, err := s.Append(t.Context(), conversation, parent, m)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// counts is what must stay the same when an input is refused.
func counts(t *testing.T, s *tree.Store, id uuid.UUID) string {
	t.Helper()
	n := 0
	for _, err := range s.Tree(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	c, err := s.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d nodes, %s", n, c.AppendJSON(nil))
}

// A preview is the beginning of what a message says, or else does.
func TestPreview(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	parent := uuid.Nil
	var want []string
	for _, m := range []struct{ body, preview string }{
		{`{"role":"user","content":"Which tree is this?"}`, "Which tree"},
		{`{"role":"user","content":[{"type":"text","text":"And this?"}]}`, "And this?"},
		{calling, "calls f, g"},
		{`{"role":"tool","tool_call_id":"a","content":""}`, ""},
		{`{"role":"tool","tool_call_id":"b","content":"an ash"}`, "an ash"},
		{`{"role":"assistant","content":"Look: ","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "Look: "},
		{`{"role":"tool","tool_call_id":"c","content":"x"}`, "x"},
		{`{"role":"assistant","content":null,"refusal":"No."}`, "No."},
	} {
		parent = mustAppend(t, s, c.ID, parent, raw(m.body)).ID
		want = append(want, m.preview)
	}
	var got []string
	for n, err := range s.Tree(t.Context(), c.ID, 10) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.Preview)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func (bytesCounter) Count(text string) int { return len(text) }

func TestTenants(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs")
	c := newConversation(t, theirs)
	m := mustAppend(t, theirs, c.ID, uuid.Nil, user("secret word"))
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Conversation": func() error { _, err := mine.Conversation(ctx, c.ID); return err },
		"UpdateConversation": func() error {
			_, err := mine.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{HeadID: m.ID})
			return err
		},
		"FindCall":           func() error { _, err := mine.FindCall(ctx, c.ID, "x"); return err },
		"DeleteConversation": func() error { return mine.DeleteConversation(ctx, c.ID) },
		"Append":             func() error { _, _, err := mine.Append(ctx, c.ID, m.ID, user("x")); return err },
		"Append again": func() error {
			_, _, err := mine.Append(ctx, c.ID, uuid.Nil, tree.NewMessage{ID: m.ID, Body: m.Body})
			return err
		},
		"AppendChain":      func() error { _, _, err := mine.AppendChain(ctx, c.ID, m.ID, []tree.NewMessage{user("x")}); return err },
		"Message":          func() error { _, err := mine.Message(ctx, c.ID, m.ID); return err },
		"Children":         func() error { _, err := mine.Children(ctx, c.ID, m.ID, tree.Paging{}); return err },
		"Children of none": func() error { _, err := mine.Children(ctx, c.ID, uuid.Nil, tree.Paging{}); return err },
		"Branches":         func() error { _, err := mine.Branches(ctx, c.ID, tree.Paging{}); return err },
		"NewestLeaf":       func() error { _, err := mine.NewestLeaf(ctx, c.ID, m.ID); return err },
		"Transcript":       func() error { _, err := mine.Transcript(ctx, c.ID, m.ID, tree.Paging{}); return err },
		"Tree": func() error {
			for _, err := range mine.Tree(ctx, c.ID, 10) {
				return err
			}
			return nil
		},
		"Prune":  func() error { _, err := mine.Prune(ctx, c.ID, m.ID); return err },
		"Fork":   func() error { _, _, err := mine.Fork(ctx, c.ID, m.ID, tree.NewConversation{}); return err },
		"Search": func() error { _, err := mine.Search(ctx, "secret", c.ID, tree.Paging{}); return err },
		"AddSummary": func() error {
			_, err := mine.AddSummary(ctx, c.ID, tree.NewSummary{AnchorID: m.ID, Body: m.Body, Range: tree.SummaryRange{LastSummarizedID: m.ID, Model: "x"}})
			return err
		},
		"Export":            func() error { _, _, err := mine.Export(ctx, c.ID); return err },
		"Head":              func() error { _, err := mine.Head(ctx, c.ID); return err },
		"View":              func() error { _, err := mine.View(ctx, c.ID, m.ID, 1<<40); return err },
		"View, no bodies":   func() error { _, err := mine.View(ctx, c.ID, m.ID, 1<<40, tree.Skeleton()); return err },
		"Messages":          func() error { _, err := mine.Messages(ctx, c.ID, []uuid.UUID{m.ID}); return err },
		"Summary":           func() error { _, err := mine.Summary(ctx, c.ID, m.ID); return err },
		"Summaries":         func() error { _, err := mine.Summaries(ctx, c.ID); return err },
		"SummariesOnBranch": func() error { _, err := mine.SummariesOnBranch(ctx, c.ID, m.ID); return err },
		"Compactions":       func() error { _, err := mine.Compactions(ctx, c.ID, tree.Paging{}); return err },
		"Lock":              func() error { return mine.Lock(ctx, c.ID) },
	} {
		if err := call(); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s of another tenant's conversation: %v, want ErrNotFound", name, err)
		}
	}
	if _, err := mine.Import(ctx, tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}}); !errors.Is(err, fault.Conflict) {
		t.Errorf("Import over another tenant's id: %v, want ErrConflict", err)
	}
	if _, _, err := mine.CreateConversation(ctx, tree.NewConversation{ID: c.ID}); !errors.Is(err, fault.Conflict) {
		t.Errorf("CreateConversation with another tenant's id: %v, want ErrConflict", err)
	}
	list, err := mine.Conversations(ctx, tree.ConversationFilter{}, tree.Paging{})
	found, err2 := mine.Conversations(ctx, tree.ConversationFilter{Query: "secret"}, tree.Paging{})
	hits, err3 := mine.Search(ctx, "secret", uuid.Nil, tree.Paging{})
	if err := errors.Join(err, err2, err3); err != nil || len(list.Data)+len(found.Data)+len(hits.Data) > 0 {
		t.Errorf("lists show another tenant's: %v, %v, %v, %v", list, found, hits, err)
	}
	if got := counts(t, theirs, c.ID); !strings.HasPrefix(got, "1 nodes") {
		t.Errorf("another tenant changed it: %s", got)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	ctx := t.Context()
	var ids []uuid.UUID
	for i := range 5 {
		c, _, err := s.CreateConversation(ctx, tree.NewConversation{Title: fmt.Sprintf("Number %d", i)})
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, c.ID, uuid.Nil, user(fmt.Sprintf("the quick fox %d", i)))
		ids = append(ids, c.ID)
	}
	mustAppend(t, s, ids[1], uuid.Nil, user("touched last"))
	list := func(query string) (got []uuid.UUID) {
		for p := (tree.Paging{Limit: 2}); ; {
			page, err := s.Conversations(ctx, tree.ConversationFilter{Query: query}, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page.Data {
				got = append(got, c.ID)
			}
			if p.Cursor = page.Next; p.Cursor == "" {
				return got
			}
		}
	}
	for query, want := range map[string][]uuid.UUID{
		"":              {ids[1], ids[4], ids[3], ids[2], ids[0]},
		"number 3":      {ids[3]},
		`"quick fox"`:   {ids[1], ids[4], ids[3], ids[2], ids[0]},
		"fox -2 -4":     {ids[1], ids[3], ids[0]},
		"touched":       {ids[1]},
		"no such thing": nil,
		"'; drop table": nil,
	} {
		if got := list(query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q lists %v, want %v", query, got, want)
		}
	}
	hits, err := s.Search(ctx, "quick fox", uuid.Nil, tree.Paging{Limit: 3})
	if err != nil || len(hits.Data) != 3 || hits.Next == "" || hits.Data[0].Title != "Number 4" || hits.Data[0].Snippet != "the quick fox 4" {
		t.Errorf("a search found %+v, %v", hits, err)
	}
	for _, p := range []tree.Paging{{Limit: -1}, {Limit: tree.MaxPage + 1}, {Cursor: "x"}, {Cursor: "!!!"}, {Cursor: strings.Repeat("f", 32)}} {
		_, err1 := s.Conversations(ctx, tree.ConversationFilter{}, p)
		_, err2 := s.Branches(ctx, ids[0], p)
		_, err3 := s.Children(ctx, ids[0], uuid.Nil, p)
		_, err4 := s.Search(ctx, "x", uuid.Nil, p)
		_, err5 := s.Transcript(ctx, ids[0], uuid.New(), p)
		for i, err := range []error{err1, err2, err3, err4, err5} {
			if !errors.Is(err, fault.Invalid) {
				t.Errorf("list %d with %+v: %v, want ErrInvalid", i, p, err)
			}
		}
	}
}

func TestAddSummaryRefuses(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	left := mustAppend(t, s, c.ID, root.ID, user("left"))
	right := mustAppend(t, s, c.ID, root.ID, user("right"))
	body := said(tree.RoleUser, "summary")
	for _, test := range []struct {
		name           string
		anchor, cutoff uuid.UUID
		body           json.RawMessage
		code           string
	}{
		{"cutoff on a sibling branch", left.ID, right.ID, body, "invalid_cutoff"},
		{"cutoff below the anchor", root.ID, left.ID, body, "invalid_cutoff"},
		{"absent cutoff", left.ID, uuid.New(), body, "invalid_cutoff"},
		{"absent anchor", uuid.New(), root.ID, body, "invalid_cutoff"},
		{"a system message", left.ID, root.ID, said(tree.RoleSystem, "summary"), "invalid_role"},
		{"no text", left.ID, root.ID, said(tree.RoleUser, ""), "empty_content"},
	} {
		_, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{AnchorID: test.anchor, Body: test.body,
			Range: tree.SummaryRange{LastSummarizedID: test.cutoff, Model: "test"}})
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != test.code {
			t.Errorf("%s: %v, want %s", test.name, err, test.code)
		}
	}
}

// A fork made again with the same id is the same fork.
func TestForkIdempotent(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	m := mustAppend(t, s, c.ID, mustAppend(t, s, c.ID, uuid.Nil, user("root")).ID, user("tip"))
	n := tree.NewConversation{ID: uuid.New(), Title: "Fork"}
	first, created, err := s.Fork(t.Context(), c.ID, m.ID, n)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	again, created, err := s.Fork(t.Context(), c.ID, m.ID, n)
	if err != nil || created || again.ID != first.ID || again.HeadID != first.HeadID {
		t.Errorf("the fork again: %+v, created %t, %v; want %+v", again, created, err, first)
	}
	want := fmt.Sprintf(`{"forked_from":{"conversation_id":"%s","message_id":"%s"}}`, c.ID, m.ID)
	if string(first.Metadata) != want {
		t.Errorf("metadata %s, want %s", first.Metadata, want)
	}
}

// A fork whose metadata has no room for a name of the source does without.
func TestForkOfFullMetadata(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	full := `{"a":"` + strings.Repeat("x", tree.MaxMetadataBytes-8) + `"}`
	c, _, err := s.CreateConversation(t.Context(), tree.NewConversation{Metadata: json.RawMessage(full)})
	if err != nil {
		t.Fatal(err)
	}
	fork, _, err := s.Fork(t.Context(), c.ID, mustAppend(t, s, c.ID, uuid.Nil, user("root")).ID, tree.NewConversation{})
	if err != nil || string(fork.Metadata) != full {
		t.Errorf("%v, metadata of %d bytes", err, len(fork.Metadata))
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Append(ctx, c.ID, uuid.Nil, user("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled append: %v", err)
	}
}
