package tree_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

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
