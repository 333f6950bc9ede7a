package tree_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

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
	if answer.Reasoning != hm || chain[1].Reasoning != "More zebras." || answer.Tokens != plain.Tokens {
		t.Errorf("appended %+v, %+v", answer, chain[1])
	}
	check := func(what string, all []tree.Message) {
		t.Helper()
		var got []string
		for _, m := range all {
			got = append(got, m.Reasoning)
		}
		if want := []string{"", hm, "", "More zebras."}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("transcript", must(s.Transcript(t.Context(), c.ID, head, tree.Paging{}))(t).Data)
	check("branch", gather(t, s.Branch(t.Context(), c.ID, head, 0)))
	ids := []uuid.UUID{question.ID, answer.ID, chain[0].ID, head}
	check("messages", must(s.Messages(t.Context(), c.ID, ids))(t))
	fork := must3(s.Fork(t.Context(), c.ID, head, tree.NewConversation{}))(t)
	check("fork", must(s.Transcript(t.Context(), fork.ID, fork.HeadID, tree.Paging{}))(t).Data)
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}, HeadID: head, Nodes: nodesOf(t, s, c.ID)}
	to := tree.New(dbtest.New(t))
	must(to.Import(t.Context(), bundle))(t)
	check("import", must(to.Transcript(t.Context(), c.ID, head, tree.Paging{}))(t).Data)
	for found, of := range map[*tree.Store]map[uuid.UUID]string{s: {answer.ID: hm, head: "More zebras."}, s.ForTenant("other"): {}} {
		if got := must(found.Reasoning(t.Context(), c.ID, append(ids, plain.ID, uuid.New())))(t); !maps.Equal(got, of) {
			t.Errorf("tenant %s reads %q", found.TenantID(), got)
		}
	}

	// Nowhere else.
	if hits := must(find(t.Context(), s, "zebra", uuid.Nil, tree.Paging{}))(t); len(hits.Data) != 0 {
		t.Errorf("a search finds %d messages", len(hits.Data))
	}
	contexts := must(summarize.New(s, summarize.Config{}))(t)
	if read := must(contexts.Context(t.Context(), c.ID, head, summarize.Window{}))(t); strings.Contains(fmt.Sprintf("%s", read.Messages), "zebra") {
		t.Errorf("a context has %s", read.Messages)
	}

	// The same message sent again, and another one under its id.
	if m, err := s.Append(t.Context(), c.ID, question.ID, asked); err != nil || m.Created || m.Reasoning != hm {
		t.Errorf("again: created %t, %v", m.Created, err)
	}
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
