package tree_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

const calling = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"x"}}]}`

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	other := newConversation(t, s)
	elsewhere := mustAppend(t, s, other.ID, uuid.Nil, user("elsewhere"))
	root := mustAppend(t, s, c.ID, uuid.Nil, user("hello"))
	call := mustAppend(t, s, c.ID, root.ID, raw(calling))
	answered := mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":""}`))
	after := mustAppend(t, s, c.ID, answered.ID, user("go on"))
	summary, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{AnchorID: root.ID, Body: said(tree.RoleUser, "so far"),
		Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "test"}})
	noError(t, err)
	foreign := newConversation(t, s.ForTenant("other"))

	long := strings.Repeat("x", tree.MaxBodyBytes)
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
		{"absent parent", c.ID, uuid.New(), user("x"), fault.NotFound, "parent_not_found", "parent_id"},
		{"parent of another conversation", c.ID, elsewhere.ID, user("x"), fault.NotFound, "parent_not_found", "parent_id"},
		{"summary as parent", c.ID, summary.ID, user("x"), fault.Invalid, "parent_is_summary", "parent_id"},
		{"id with other content", c.ID, uuid.Nil, tree.NewMessage{ID: root.ID, Message: chat.Read(said(tree.RoleUser, "other"))}, fault.Conflict, "id_conflict", "id"},
		{"id with another parent", c.ID, call.ID, tree.NewMessage{ID: root.ID, Message: chat.Read(root.Body)}, fault.Conflict, "id_conflict", "id"},
		{"id with another pin", c.ID, uuid.Nil, tree.NewMessage{ID: root.ID, Message: chat.Read(root.Body), Pinned: true}, fault.Conflict, "id_conflict", "id"},
		{"id with other metadata", c.ID, uuid.Nil, tree.NewMessage{ID: root.ID, Message: chat.Read(root.Body), Metadata: json.RawMessage(`{"a":1}`)}, fault.Conflict, "id_conflict", "id"},
		{"id of a summary", c.ID, uuid.Nil, tree.NewMessage{ID: summary.ID, Message: chat.Read(summary.Body)}, fault.Conflict, "id_conflict", "id"},
		{"NUL", c.ID, uuid.Nil, raw(`{"role":"user","content":"a\u0000b"}`), fault.Invalid, "invalid_character", ""},
		{"too large", c.ID, uuid.Nil, user(long), fault.TooLarge, "message_too_large", ""},
		{"unknown role", c.ID, uuid.Nil, raw(`{"role":"bot","content":"x"}`), fault.Invalid, "invalid_role", "role"},
		{"reserved member", c.ID, uuid.Nil, raw(`{"id":"x","role":"user","content":"x"}`), fault.Invalid, "reserved_member", "id"},
		{"empty content", c.ID, uuid.Nil, user(" \n"), fault.Invalid, "empty_content", "content"},
		{"two calls of one id", c.ID, uuid.Nil, raw(strings.Replace(calling, `"id":"b"`, `"id":"a"`, 1)), fault.Invalid, "invalid_tool_calls", "tool_calls[1].id"},
		{"tool at the root", c.ID, uuid.Nil, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"tool without a call", c.ID, root.ID, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"tool with another call's id", c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"c","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"tool answered already", c.ID, answered.ID, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`), fault.Invalid, "tool_call_answered", "tool_call_id"},
		{"tool after the turn went on", c.ID, after.ID, raw(`{"role":"tool","tool_call_id":"b","content":"x"}`), fault.Invalid, "tool_call_not_found", "tool_call_id"},
		{"metadata that is no object", c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read(said(tree.RoleUser, "x")), Metadata: json.RawMessage(`3`)}, fault.Invalid, "wrong_type", "metadata"},
		{"large metadata", c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read(said(tree.RoleUser, "x")), Metadata: said(tree.RoleUser, long)}, fault.TooLarge, "metadata_too_large", "metadata"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := counts(t, s, c.ID)
			stored, err := s.Append(t.Context(), test.conversation, test.parent, test.message)
			var e *fault.Error
			if !errors.As(err, &e) || stored.Created {
				t.Fatalf("created %t, error %v, want a *fault.Error", stored.Created, err)
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
	s, c := newTree(t)
	call := mustAppend(t, s, c.ID, uuid.Nil, raw(calling))
	a := mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":""}`))
	b := mustAppend(t, s, c.ID, a.ID, raw(`{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"x"}]}`))
	if b.Depth != 2 {
		t.Errorf("depth %d, want 2", b.Depth)
	}
	again := mustAppend(t, s, c.ID, a.ID, tree.NewMessage{ID: b.ID, Message: chat.Read(b.Body)})
	if again.ID != b.ID {
		t.Error("a tool message again is another message")
	}
	mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":"another result"}`))
	mustAppend(t, s, c.ID, b.ID, raw(`{"role":"assistant","content":null,"refusal":"I can't"}`))
	mustAppend(t, s, c.ID, b.ID, raw(` {"role" : "user", "content":[{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}], "extra": [1, 2.50]} `))
	// The most text a body holds.
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

func TestChainRefuses(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
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
		{"one id twice", uuid.Nil, []tree.NewMessage{{ID: id, Message: chat.Read(stored.Body)}, {ID: id, Message: chat.Read(stored.Body)}}, "duplicate_id", "messages[1].id"},
		{"an id that is there", uuid.Nil, []tree.NewMessage{user("x"), {ID: stored.ID, Message: chat.Read(stored.Body)}}, "id_conflict", "messages[1].id"},
		{"its end is there", uuid.Nil, []tree.NewMessage{user("x"), user("y"), {ID: stored.ID, Message: chat.Read(stored.Body)}}, "id_conflict", "messages[2].id"},
		{"half of it is there", uuid.Nil, []tree.NewMessage{{ID: stored.ID, Message: chat.Read(stored.Body)}, user("x")}, "id_conflict", "messages[1].id"},
		{"absent parent", id, []tree.NewMessage{user("x")}, "parent_not_found", "parent_id"},
		{"result without call", uuid.Nil, []tree.NewMessage{user("x"), raw(`{"role":"tool","tool_call_id":"a","content":"x"}`)}, "tool_call_not_found", "messages[1].tool_call_id"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := counts(t, s, c.ID)
			_, err := s.AppendChain(t.Context(), c.ID, test.parent, test.chain)
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

func activeHead(t *testing.T, s *tree.Store, id uuid.UUID) uuid.UUID {
	t.Helper()
	c := must(s.Conversation(t.Context(), id))(t)
	return c.HeadID
}

func setHead(t *testing.T, s *tree.Store, id, head uuid.UUID) {
	t.Helper()
	must(s.UpdateConversation(t.Context(), id, tree.ConversationUpdate{HeadID: head}))(t)
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
		pruned := must(s.Prune(t.Context(), c.ID, ids[test.prune]))(t)
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
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, raw(calling)).ID
	elsewhere := mustAppend(t, s, c.ID, uuid.Nil, user("elsewhere")).ID
	result := func(call string) tree.NewMessage {
		return tree.NewMessage{ID: uuid.New(), Message: chat.Read([]byte(`{"role":"tool","tool_call_id":"` + call + `","content":"x"}`))}
	}
	plain := tree.NewMessage{ID: uuid.New(), Message: chat.Read(said(tree.RoleUser, "x"))}
	for name, chain := range map[string][]tree.NewMessage{"a message": {plain}, "a tool's result": {result("a")}, "a chain": {result("b"), {ID: uuid.New(), Message: plain.Message}}} {
		send := func() (created bool, err error) {
			if len(chain) == 1 {
				stored, err := s.Append(t.Context(), c.ID, root, chain[0])
				return stored.Created, err
			}
			stored, err := s.AppendChain(t.Context(), c.ID, root, chain)
			return stored.Created, err
		}
		if created, err := send(); err != nil || !created || activeHead(t, s, c.ID) != chain[len(chain)-1].ID {
			t.Fatalf("%s: created %t, %v, or it is not the head", name, created, err)
		}
		setHead(t, s, c.ID, elsewhere)
		before := counts(t, s, c.ID)
		if created, err := send(); err != nil || created {
			t.Fatalf("%s again: created %t, %v", name, created, err)
		}
		if after := counts(t, s, c.ID); after != before {
			t.Errorf("%s again changed the conversation\nfrom %s\nto   %s", name, before, after)
		}
	}
}
