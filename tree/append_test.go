package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
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
	summary, err := s.Summaries().Add(t.Context(), c.ID, tree.NewSummary{AnchorID: root.ID, Body: said(tree.RoleUser, "so far"),
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
			check.Need(t, errors.As(err, &e) && !stored.Created, "created %t, error %v, want a *fault.Error", stored.Created, err)
			check.That(t, errors.Is(err, test.kind) && e.Code == test.code && e.Field == test.field,
				"got %v, %s of %q; want %v, %s of %q", e.Kind, e.Code, e.Field, test.kind, test.code, test.field)
			check.Equal(t, "the conversation after a refused message", counts(t, s, c.ID), before)
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
		check.Equal(t, "tokens of "+test.body, mustAppend(t, s, c.ID, uuid.Nil, raw(test.body)).Tokens, test.want)
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
			check.Need(t, errors.As(err, &e) && e.Code == test.code && e.Field == test.field, "got %+v, want %s of %q", err, test.code, test.field)
			check.Equal(t, "the conversation after a refused chain", counts(t, s, c.ID), before)
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

// An append at the head makes a root in an empty conversation, and else stands under the active head.
func TestAppendAtHead(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	first, err := s.Append(t.Context(), c.ID, uuid.Nil, user("first"), tree.AtHead())
	check.Need(t, err == nil && first.ParentID == uuid.Nil, "%+v, %v", first.Message, err)
	second, err := s.Append(t.Context(), c.ID, uuid.Nil, user("second"), tree.AtHead())
	check.Need(t, err == nil && second.ParentID == first.ID, "%+v, %v", second.Message, err)
	must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{HeadID: first.ID}))(t)
	third, err := s.Append(t.Context(), c.ID, uuid.Nil, user("third"), tree.AtHead())
	check.Need(t, err == nil && third.ParentID == first.ID && third.Siblings.Index == 2, "%+v, %v", third.Message, err)
	_, err = s.Append(t.Context(), c.ID, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":""}`))}, tree.AtHead())
	f := fault.Of(err)
	check.That(t, f.Field == "content", "the refusal of a single message names %q", f.Field)
}

// Sent again, it is the first append, wherever the head is. Other content, or another place, is a conflict.
func TestAppendAtHeadAgain(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	mustAppend(t, s, c.ID, uuid.Nil, user("before"))
	for length := 1; length <= 2; length++ {
		chain := chainOf(length)
		add := func(opts ...tree.AppendOption) (bool, error) {
			if length == 1 {
				m, err := s.Append(t.Context(), c.ID, uuid.Nil, chain[0], opts...)
				return m.Created, err
			}
			stored, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, chain, opts...)
			return stored.Created, err
		}
		created, err := add(tree.AtHead())
		check.Need(t, created && err == nil, "%v, %v", created, err)
		elsewhere := mustAppend(t, s, c.ID, uuid.Nil, user("another root")).ID
		if created, err := add(tree.AtHead()); created || err != nil || activeHead(t, s, c.ID) != elsewhere {
			t.Errorf("%d sent again: created %t, %v, and the head is %s", length, created, err, activeHead(t, s, c.ID))
		}
		refused(t, "as a root", second(add()), fault.Conflict)
		chain[length-1].Message = user("something else").Message
		refused(t, "other content", second(add(tree.AtHead())), fault.Conflict)
	}
}

// An append bound to the head stores nothing once another message is the head, and finds what it stored before.
func TestIfHead(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	first := chainOf(1)[0]
	stored, err := s.Append(t.Context(), c.ID, uuid.Nil, first, tree.IfHead(uuid.Nil))
	check.Need(t, stored.Created && err == nil, "created %t, %v", stored.Created, err)
	second := []tree.NewMessage{user("second"), user("third")}
	chain := must(s.AppendChain(t.Context(), c.ID, first.ID, second, tree.IfHead(first.ID)))(t).Messages
	for _, saw := range []uuid.UUID{uuid.Nil, first.ID, chain[0].ID} {
		_, err := s.AppendChain(t.Context(), c.ID, saw, second, tree.IfHead(saw))
		check.That(t, errors.Is(err, fault.Conflict) && fault.Of(err).Code == "changed_meanwhile", "with the head %s before: %v", saw, err)
	}
	m, err := s.Append(t.Context(), c.ID, uuid.Nil, first, tree.IfHead(uuid.Nil))
	check.That(t, !m.Created && m.ID == first.ID && err == nil, "what is stored already gives %s, %v, %v", m.ID, m.Created, err)
	got, err := s.Conversation(t.Context(), c.ID)
	check.That(t, err == nil && got.HeadID == chain[1].ID, "the head is %s: %v", got.HeadID, err)
}

// What is written as JSON is read again as it was, also a body's members of the names that an answer has.
func TestJSONIsRead(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01990000-0000-7000-8000-00000000000a")
	at := time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC)
	m := tree.Message{
		ConversationID: id, ID: id, ParentID: id, Role: tree.RoleUser, Body: json.RawMessage(`{"content":"Why <cut> it?","name":"ada","role":"user"}`),
		Reasoning: "Hm.", Metadata: json.RawMessage(`{"a":1}`), Pinned: true, Tokens: 5, Depth: 2, Siblings: tree.Siblings{Index: 1, Count: 2}, CreatedAt: at,
		Annotation: tree.Annotation{Rating: 1, Label: "good", Note: "Keep."}, Graft: &tree.Graft{FromHeadID: id, Messages: 1},
	}
	other := tree.Message{ID: id, Body: json.RawMessage(`{"grafted":true,"label":["x"],"rating":"good","reasoning":{"effort":"low"},"role":"user"}`), CreatedAt: at}
	summary := tree.Node{ID: id, ParentID: id, Kind: tree.KindSummary, Role: tree.RoleUser, Tokens: 9, CreatedAt: at, Summary: &tree.SummaryRange{LastSummarizedID: id, KeptIDs: []uuid.UUID{id}, Model: "m"}}
	var again, otherAgain tree.Message
	var node tree.Node
	for _, of := range []struct {
		was json.Marshaler
		is  interface {
			json.Marshaler
			json.Unmarshaler
		}
	}{{m, &again}, {other, &otherAgain}, {summary, &node}} {
		was, err := of.was.MarshalJSON()
		if err == nil {
			err = of.is.UnmarshalJSON(was)
		}
		is, _ := of.is.MarshalJSON()
		check.That(t, err == nil && string(is) == string(was), "%v\n%s is read as\n%s", err, was, is)
	}
}

func thought(text, answer string) tree.NewMessage {
	return tree.NewMessage{ID: uuid.New(), Message: chat.Read(said(tree.RoleAssistant, answer)), Reasoning: text}
}

// Reasoning is read with its message, in forks and exports, and in no context, search or count of tokens.
func TestReasoning(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	const hm = "They greet me, <zebra> & \"all\"."
	question := mustAppend(t, s, c.ID, uuid.Nil, user("Hello?"))
	asked := thought(hm, "Hello.")
	answer := mustAppend(t, s, c.ID, question.ID, asked)
	plain := mustAppend(t, s, c.ID, question.ID, thought("", "Hello."))
	chain := must(s.AppendChain(t.Context(), c.ID, answer.ID, []tree.NewMessage{user("More?"), thought("More zebras.", "No.")}))(t).Messages
	head := chain[1].ID
	check.That(t, answer.Reasoning == hm && chain[1].Reasoning == "More zebras." && answer.Tokens == plain.Tokens, "appended %+v, %+v", answer, chain[1])
	carries := func(what string, all []tree.Message) {
		t.Helper()
		var got []string
		for _, m := range all {
			got = append(got, m.Reasoning)
		}
		want := []string{"", hm, "", "More zebras."}
		check.That(t, slices.Equal(got, want), "%s: %q, want %q", what, got, want)
	}
	carries("transcript", must(s.Transcript(t.Context(), c.ID, head, tree.Paging{}))(t).Data)
	carries("branch", gather(t, s.Branch(t.Context(), c.ID, head, 0)))
	ids := []uuid.UUID{question.ID, answer.ID, chain[0].ID, head}
	carries("messages", must(s.Messages(t.Context(), c.ID, ids))(t))
	fork := must3(s.Fork(t.Context(), c.ID, head, tree.NewConversation{}))(t)
	carries("fork", must(s.Transcript(t.Context(), fork.ID, fork.HeadID, tree.Paging{}))(t).Data)
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}, HeadID: head, Nodes: nodesOf(t, s, c.ID)}
	to := tree.New(dbtest.New(t))
	must(to.Import(t.Context(), bundle))(t)
	carries("import", must(to.Transcript(t.Context(), c.ID, head, tree.Paging{}))(t).Data)
	for found, of := range map[*tree.Store]map[uuid.UUID]string{s: {answer.ID: hm, head: "More zebras."}, s.ForTenant("other"): {}} {
		got := must(found.Reasoning(t.Context(), c.ID, append(ids, plain.ID, uuid.New())))(t)
		check.That(t, maps.Equal(got, of), "tenant %s reads %q", found.TenantID(), got)
	}

	// Nowhere else.
	check.Equal(t, "messages that a search finds", len(must(find(t.Context(), s, "zebra", uuid.Nil, tree.Paging{}))(t).Data), 0)
	contexts := must(summarize.New(s, summarize.Config{}))(t)
	check.Lacks(t, "a context", fmt.Sprintf("%s", must(contexts.Context(t.Context(), c.ID, head, summarize.Window{}))(t).Messages), "zebra")

	// The same message sent again, and another one under its id.
	m, err := s.Append(t.Context(), c.ID, question.ID, asked)
	check.That(t, err == nil && !m.Created && m.Reasoning == hm, "again: created %t, %v", m.Created, err)
	asked.Reasoning = "Something else."
	refused(t, "with other reasoning", second(s.Append(t.Context(), c.ID, question.ID, asked)), fault.Conflict)
}

func TestReasoningIsChecked(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	for name, test := range map[string]struct {
		m    tree.NewMessage
		kind error
		code string
	}{
		"of a user":          {tree.NewMessage{Message: chat.Read(said(tree.RoleUser, "x")), Reasoning: "x"}, fault.Invalid, "unexpected_reasoning"},
		"too long":           {thought(strings.Repeat("x", tree.MaxReasoning+1), "x"), fault.TooLarge, "message_too_large"},
		"no UTF-8":           {thought("\xff", "x"), fault.Invalid, "invalid_utf8"},
		"NUL":                {thought("\x00", "x"), fault.Invalid, "invalid_character"},
		"twice in a message": {tree.NewMessage{Message: raw(`{"role":"assistant","content":"x","reasoning":"y"}`).Message, Reasoning: "x"}, fault.Invalid, "reserved_member"},
	} {
		_, err := s.Append(t.Context(), c.ID, uuid.Nil, test.m)
		e := fault.Of(err)
		check.That(t, errors.Is(err, test.kind) && e.Code == test.code && e.Field == "reasoning", "%s: %v", name, err)
	}
	longest := thought(strings.Repeat("x", tree.MaxReasoning), "x")
	m := mustAppend(t, s, c.ID, uuid.Nil, longest)
	check.That(t, m.Reasoning == longest.Reasoning, "the longest reasoning came back otherwise")
}
