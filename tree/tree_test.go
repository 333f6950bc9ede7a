package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

const calling = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"x"}}]}`

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	other := newConversation(t, s)
	elsewhere := mustAppend(t, s, other.ID, uuid.Nil, user("elsewhere"))
	root := mustAppend(t, s, c.ID, uuid.Nil, user("hello"))
	call := mustAppend(t, s, c.ID, root.ID, raw(calling))
	answered := mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":""}`))
	after := mustAppend(t, s, c.ID, answered.ID, user("go on"))
	summary, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{AnchorID: root.ID, Body: said(tree.RoleUser, "so far"),
		Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "test"}})
	if err != nil {
		t.Fatal(err)
	}
	foreign := newConversation(t, s.ForTenant("other"))

	long := strings.Repeat("x", tree.MaxBodyBytes)
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, test := range []struct {
		name         string
		conversation uuid.UUID
		parent       uuid.UUID
		message      tree.NewMessage
		kind         error
		code, field  string
	}{
		{"absent conversation", uuid.New(), uuid.Nil, user("x"), fault.NotFound, "conversation_not_found", ""},
		{"another tenant's conversation", foreign.ID, uuid.Nil, user("x"), fault.NotFound, "conversation_not_found", ""},
		{"another tenant's conversation, tool", foreign.ID, root.ID, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.NotFound, "conversation_not_found", ""},
		{"absent parent", c.ID, uuid.New(), user("x"), fault.NotFound, "parent_not_found", "parent_id"},
		{"absent parent of a tool", c.ID, uuid.New(), raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.NotFound, "parent_not_found", "parent_id"},
		{"parent of another conversation", c.ID, elsewhere.ID, user("x"), fault.NotFound, "parent_not_found", "parent_id"},
		{"summary as parent", c.ID, summary.ID, user("x"), fault.Invalid, "parent_is_summary", "parent_id"},
		{"id with other content", c.ID, uuid.Nil, tree.NewMessage{ID: root.ID, Body: said(tree.RoleUser, "other")}, fault.Conflict, "id_conflict", "id"},
		{"id with another parent", c.ID, call.ID, tree.NewMessage{ID: root.ID, Body: root.Body}, fault.Conflict, "id_conflict", "id"},
		{"id with another pin", c.ID, uuid.Nil, tree.NewMessage{ID: root.ID, Body: root.Body, Pinned: true}, fault.Conflict, "id_conflict", "id"},
		{"id with other metadata", c.ID, uuid.Nil, tree.NewMessage{ID: root.ID, Body: root.Body, Metadata: json.RawMessage(`{"a":1}`)}, fault.Conflict, "id_conflict", "id"},
		{"id of a summary", c.ID, uuid.Nil, tree.NewMessage{ID: summary.ID, Body: summary.Body}, fault.Conflict, "id_conflict", "id"},
		{"no JSON", c.ID, uuid.Nil, raw(`{"role":`), fault.Invalid, "invalid_json", ""},
		{"no object", c.ID, uuid.Nil, raw(`["user"]`), fault.Invalid, "wrong_type", ""},
		{"nothing", c.ID, uuid.Nil, raw(``), fault.Invalid, "invalid_json", ""},
		{"invalid UTF-8", c.ID, uuid.Nil, raw("{\"role\":\"user\",\"content\":\"\xff\"}"), fault.Invalid, "invalid_utf8", ""},
		{"NUL", c.ID, uuid.Nil, raw(`{"role":"user","content":"a\u0000b"}`), fault.Invalid, "invalid_character", ""},
		{"high surrogate alone", c.ID, uuid.Nil, raw(`{"role":"user","content":"a\ud83d"}`), fault.Invalid, "invalid_character", ""},
		{"low surrogate alone", c.ID, uuid.Nil, raw(`{"role":"user","content":"\ude00"}`), fault.Invalid, "invalid_character", ""},
		{"too deep", c.ID, uuid.Nil, raw(`{"role":"user","content":"x","extra":` + deep + `}`), fault.Invalid, "too_deep", ""},
		{"too large", c.ID, uuid.Nil, user(long), fault.TooLarge, "message_too_large", ""},
		{"no role", c.ID, uuid.Nil, raw(`{"content":"x"}`), fault.Invalid, "invalid_role", "role"},
		{"unknown role", c.ID, uuid.Nil, raw(`{"role":"bot","content":"x"}`), fault.Invalid, "invalid_role", "role"},
		{"role of another case", c.ID, uuid.Nil, raw(`{"Role":"user","content":"x"}`), fault.Invalid, "invalid_role", "role"},
		{"role of a wrong type", c.ID, uuid.Nil, raw(`{"role":1,"content":"x"}`), fault.Invalid, "wrong_type", "role"},
		{"reserved member", c.ID, uuid.Nil, raw(`{"id":"x","role":"user","content":"x"}`), fault.Invalid, "reserved_member", "id"},
		{"no content", c.ID, uuid.Nil, raw(`{"role":"user"}`), fault.Invalid, "empty_content", "content"},
		{"empty content", c.ID, uuid.Nil, user(" \n"), fault.Invalid, "empty_content", "content"},
		{"empty parts", c.ID, uuid.Nil, raw(`{"role":"user","content":[]}`), fault.Invalid, "empty_content", "content"},
		{"content of a wrong type", c.ID, uuid.Nil, raw(`{"role":"user","content":{}}`), fault.Invalid, "invalid_content", "content"},
		{"part without type", c.ID, uuid.Nil, raw(`{"role":"user","content":[{"text":"x"}]}`), fault.Invalid, "invalid_content", "content[0].type"},
		{"part that is no object", c.ID, uuid.Nil, raw(`{"role":"user","content":[{"type":"text","text":"x"},"x"]}`), fault.Invalid, "invalid_content", "content[1]"},
		{"calls of a user", c.ID, uuid.Nil, raw(strings.Replace(calling, "assistant", "user", 1)), fault.Invalid, "empty_content", "content"},
		{"calls of a user who talks", c.ID, uuid.Nil, raw(`{"role":"user","content":"x","tool_calls":[]}`), fault.Invalid, "unexpected_tool_calls", "tool_calls"},
		{"no call", c.ID, uuid.Nil, raw(`{"role":"assistant","content":"x","tool_calls":[]}`), fault.Invalid, "invalid_tool_calls", "tool_calls"},
		{"call without id", c.ID, uuid.Nil, raw(strings.Replace(calling, `"id":"b"`, `"id":""`, 1)), fault.Invalid, "invalid_tool_calls", "tool_calls[1].id"},
		{"two calls of one id", c.ID, uuid.Nil, raw(strings.Replace(calling, `"id":"b"`, `"id":"a"`, 1)), fault.Invalid, "invalid_tool_calls", "tool_calls[1].id"},
		{"call without function", c.ID, uuid.Nil, raw(`{"role":"assistant","tool_calls":[{"id":"a","type":"function"}]}`), fault.Invalid, "invalid_tool_calls", "tool_calls[0]"},
		{"tool without call id", c.ID, call.ID, raw(`{"role":"tool","content":"x"}`), fault.Invalid, "missing_tool_call_id", "tool_call_id"},
		{"call id of a user", c.ID, uuid.Nil, raw(`{"role":"user","content":"x","tool_call_id":"a"}`), fault.Invalid, "unexpected_tool_call_id", "tool_call_id"},
		{"tool at the root", c.ID, uuid.Nil, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"tool without a call", c.ID, root.ID, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"tool with another call's id", c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"c","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"tool answered already", c.ID, answered.ID, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.Invalid, "tool_call_answered", "tool_call_id"},
		{"tool after the turn went on", c.ID, after.ID, raw(`{"role":"tool","tool_call_id":"b","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"metadata that is no object", c.ID, uuid.Nil, tree.NewMessage{Body: said(tree.RoleUser, "x"), Metadata: json.RawMessage(`3`)}, fault.Invalid, "wrong_type", "metadata"},
		{"large metadata", c.ID, uuid.Nil, tree.NewMessage{Body: said(tree.RoleUser, "x"), Metadata: said(tree.RoleUser, long)}, fault.TooLarge, "metadata_too_large", "metadata"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := counts(t, s, c.ID)
			_, created, err := s.Append(t.Context(), test.conversation, test.parent, test.message)
			var e *fault.Error
			if !errors.As(err, &e) || created {
				t.Fatalf("created %t, error %v, want a *fault.Error", created, err)
			}
			if !errors.Is(err, test.kind) || e.Code != test.code || e.Field != test.field {
				t.Errorf("got %v, %s of %q; want %v, %s of %q", e.Kind, e.Code, e.Field, test.kind, test.code, test.field)
			}
			if after := counts(t, s, c.ID); after != before {
				t.Errorf("a refused message changed the conversation\nfrom %s\nto   %s", before, after)
			}
		})
	}
}

func TestAppendTakes(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	call := mustAppend(t, s, c.ID, uuid.Nil, raw(calling))
	a := mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":""}`))
	b := mustAppend(t, s, c.ID, a.ID, raw(`{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"x"}]}`))
	if b.Depth != 2 {
		t.Errorf("depth %d, want 2", b.Depth)
	}
	again := mustAppend(t, s, c.ID, a.ID, tree.NewMessage{ID: b.ID, Body: b.Body})
	if again.ID != b.ID {
		t.Error("a tool message again is another message")
	}
	mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":"another result"}`))
	mustAppend(t, s, c.ID, b.ID, raw(`{"role":"assistant","content":null,"refusal":"I can't"}`))
	mustAppend(t, s, c.ID, b.ID, raw(` {"role" : "user", "content":[{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}], "extra": [1, 2.50]} `))
	// The most text a body holds, every word another: more than one search
	// vector takes.
	var words strings.Builder
	for i := 0; words.Len() < tree.MaxBodyBytes-100; i++ {
		fmt.Fprintf(&words, "%x ", i)
	}
	mustAppend(t, s, c.ID, b.ID, user(words.String()))
	mustAppend(t, s, c.ID, b.ID, user(strings.Repeat("字", tree.MaxBodyBytes/3-100)))
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t), tree.WithTokenCounter(bytesCounter{}))
	c := newConversation(t, s)
	for _, test := range []struct {
		body string
		want int
	}{
		{`{"role":"user","content":"12345"}`, 3 + 5},
		{`{"role":"user","content":"12345","name":"ann"}`, 3 + 5 + 1 + 3},
		{`{"role":"user","content":[{"type":"text","text":"12"},{"type":"text","text":"34"}]}`, 3 + 5}, // a newline between
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, 3 + 765},
		{`{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}`, 3 + 3 + 1}, // 44 bytes of JSON
		{`{"role":"assistant","content":null,"refusal":"no"}`, 3 + 2},
		{`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, 3 + 8 + 2 + 1 + 2},
	} {
		if got := mustAppend(t, s, c.ID, uuid.Nil, raw(test.body)).Tokens; got != test.want {
			t.Errorf("%s has %d tokens, want %d", test.body, got, test.want)
		}
	}
}

type bytesCounter struct{}

func (bytesCounter) Count(text string) int { return len(text) }

func TestChainRefuses(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	stored := mustAppend(t, s, c.ID, uuid.Nil, user("here"))
	id := uuid.New()
	for _, test := range []struct {
		name        string
		parent      uuid.UUID
		chain       []tree.NewMessage
		code, field string
	}{
		{"empty", uuid.Nil, nil, "empty_chain", "messages"},
		{"too long", uuid.Nil, make([]tree.NewMessage, tree.MaxChain+1), "chain_too_long", "messages"},
		{"a bad message", uuid.Nil, []tree.NewMessage{user("x"), user("")}, "empty_content", "messages[1].content"},
		{"one id twice", uuid.Nil, []tree.NewMessage{{ID: id, Body: stored.Body}, {ID: id, Body: stored.Body}}, "duplicate_id", "messages[1].id"},
		{"an id that is there", uuid.Nil, []tree.NewMessage{user("x"), {ID: stored.ID, Body: stored.Body}}, "id_conflict", "messages[1].id"},
		{"half of it is there", uuid.Nil, []tree.NewMessage{{ID: stored.ID, Body: stored.Body}, user("x")}, "id_conflict", "messages[1].id"},
		{"absent parent", id, []tree.NewMessage{user("x")}, "parent_not_found", "parent_id"},
		{"result without call", uuid.Nil, []tree.NewMessage{user("x"), raw(`{"role":"tool","tool_call_id":"a","content":"x"}`)}, "tool_call_not_found", "messages[1].tool_call_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := counts(t, s, c.ID)
			_, _, err := s.AppendChain(t.Context(), c.ID, test.parent, test.chain)
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != test.code || e.Field != test.field {
				t.Fatalf("got %+v, want %s of %q", err, test.code, test.field)
			}
			if after := counts(t, s, c.ID); after != before {
				t.Errorf("a refused chain changed the conversation\nfrom %s\nto   %s", before, after)
			}
		})
	}
}

// A caller's transaction: what is appended in it is there when it commits, is
// gone when it doesn't, and a refused append doesn't break it.
func TestInTransaction(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	for _, commit := range []bool{true, false} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inTx := tree.New(tx)
		m := mustAppend(t, inTx, c.ID, uuid.Nil, user("in a transaction"))
		if _, _, err := inTx.Append(t.Context(), c.ID, uuid.New(), user("x")); !errors.Is(err, fault.NotFound) {
			t.Fatalf("an absent parent: %v", err)
		}
		if _, _, err := inTx.AppendChain(t.Context(), c.ID, uuid.New(), []tree.NewMessage{user("x")}); !errors.Is(err, fault.NotFound) {
			t.Fatalf("an absent parent: %v", err)
		}
		chain, _, err := inTx.AppendChain(t.Context(), c.ID, m.ID, []tree.NewMessage{user("x"), user("y")})
		if err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Message(t.Context(), c.ID, chain[1].ID); (err == nil) != commit {
			t.Errorf("committed %t, and reading it gives %v", commit, err)
		}
	}
}

// Writers of every kind on one conversation at once: what was acknowledged is
// there once, under its parent, and siblings count without gaps.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(16))
	s := tree.New(pool)
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	var (
		mu    sync.Mutex
		acked = map[uuid.UUID]uuid.UUID{} // message → parent
	)
	ack := func(ms ...tree.Message) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range ms {
			acked[m.ID] = m.ParentID
		}
	}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			tip := root.ID
			for i := range 20 {
				switch {
				case w%4 == 0 && i%5 == 4: // a chain under the root
					chain, _, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("chain"), user("chain")})
					if err != nil {
						t.Error(err)
						return
					}
					ack(chain...)
				case w%4 == 1 && i%5 == 4: // append and prune again
					m, _, err := s.Append(t.Context(), c.ID, root.ID, user("short-lived"))
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := s.Prune(t.Context(), c.ID, m.ID); err != nil {
						t.Error(err)
						return
					}
				default: // the same append twice at once, as an impatient client sends it
					n := tree.NewMessage{ID: uuid.New(), Body: said(tree.RoleUser, "x")}
					var twice sync.WaitGroup
					for range 2 {
						twice.Go(func() {
							m, _, err := s.Append(t.Context(), c.ID, tip, n)
							if err != nil {
								t.Error(err)
								return
							}
							ack(m)
						})
					}
					twice.Wait()
					if i%3 > 0 {
						tip = n.ID
					}
				}
			}
		})
	}
	wg.Wait()
	siblings := map[uuid.UUID]int{}
	highest := map[uuid.UUID]int{}
	nodes := 0
	for n, err := range s.Tree(t.Context(), c.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		nodes++
		siblings[n.ParentID]++
		highest[n.ParentID] = max(highest[n.ParentID], n.Index)
		if parent, ok := acked[n.ID]; n.ID != root.ID && (!ok || parent != n.ParentID) {
			t.Errorf("%s under %s: acknowledged %t under %s", n.ID, n.ParentID, ok, parent)
		}
	}
	if nodes != len(acked)+1 {
		t.Errorf("%d nodes, and %d were acknowledged", nodes, len(acked)+1)
	}
	for parent, count := range siblings {
		if highest[parent] != count {
			t.Errorf("%s has %d children with indexes up to %d", parent, count, highest[parent])
		}
	}
}

// Appends below a message that is pruned meanwhile are stored and go with it,
// or find their parent gone; none is left over.
func TestPruneAgainstAppend(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(12))
	s := tree.New(pool)
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	for range 20 {
		doomed := mustAppend(t, s, c.ID, root.ID, user("doomed"))
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, _, err := s.Append(t.Context(), c.ID, doomed.ID, user("late")); err != nil && !errors.Is(err, fault.NotFound) {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if _, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: doomed.ID}); err != nil && !errors.Is(err, fault.Invalid) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Prune(t.Context(), c.ID, doomed.ID); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		got, err := s.Conversation(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.HeadID != root.ID {
			t.Fatalf("the head is %s after its subtree was pruned, want %s", got.HeadID, root.ID)
		}
	}
	if got := counts(t, s, c.ID); !strings.HasPrefix(got, "1 nodes") {
		t.Errorf("left over: %s", got)
	}
}

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
