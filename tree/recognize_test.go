package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestSession holds that a session's history goes on below the last of its answers
// that is known, also where its beginning changed or is missing, and that a history
// of no session begins a path of its own there.
func TestSession(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	whole := path("s", "u1", "a1", "u2", "a2", "u3", "a3")
	long := appendPath(t, s, c, whole)
	other := appendPath(t, s, c, path("s", "u1", "a1", "u2 edited", "a2 of the edit"))
	pruned := appendPath(t, s, c, path("s", "u other", "a2", "u4"))
	reminded := appendPath(t, s, c, path("s", "u9", "a9", "s at 1", "u10", "a10"))
	called := appendPath(t, s, c, path("s", "u7", "c", "t", "a7", "u8", "c", "t", "c", "t", "a8"))
	for name, test := range map[string]struct {
		history       []*chat.Message
		head          uuid.UUID
		known, prompt int
		alone         int // known without a session
	}{
		"a changed system prompt":             {path("s2", "u1", "a1", "u2", "a2", "u3", "a3", "u4"), long.HeadID, 7, 1, 7},
		"a changed reminder amid it":          {path("s", "u9", "a9", "s at 2", "u10", "a10", "u11"), reminded.HeadID, 6, 0, 6},
		"calls that it leaves out":            {path("s at 2", "u7", "a7", "u8", "a8", "u9"), called.HeadID, 5, 4, 5},
		"some calls that it leaves out":       {path("s", "u7", "a7", "u8", "c", "t", "a8", "u9"), called.HeadID, 7, 0, 7},
		"no system prompt":                    {path("u1", "a1", "u2", "a2", "u3", "a3", "u4"), long.HeadID, 6, 0, 0},
		"a clock in the first message":        {path("s", "u1 at noon", "a1", "u2", "a2", "u3", "a3", "u4"), long.HeadID, 7, 0, 1},
		"a question that lost its documents":  {path("s", "u1", "a1", "u2", "a2", "u3 alone", "a3", "u4"), long.HeadID, 7, 0, 5},
		"a window":                            {path("s", "a2", "u3", "a3", "u4"), long.HeadID, 4, 0, 1},
		"a window of an answer":               {path("a3", "u4"), long.HeadID, 1, 0, 0},
		"a window of a branch":                {path("s", "u2 edited", "a2 of the edit", "u4"), other.HeadID, 3, 0, 1},
		"the branch that says more of it":     {path("u other", "a2", "u4", "u5"), pruned.HeadID, 3, 0, 0},
		"what was asked below it already":     {path("s2", "u1", "a1", "u2 edited"), uuid.Nil, 4, 1, 4},
		"an answer that nobody gave":          {path("s", "u1", "a of nobody", "u2"), uuid.Nil, 2, 0, 2},
		"an answer given twice":               {path("s", "u1", "a1", "a1", "u2"), uuid.Nil, 3, 0, 3},
		"less of another branch":              {path("s", "u1", "a1", "u5", "a2 of the edit", "u6"), other.HeadID, 5, 0, 3},
		"an unknown answer after a known one": {path("s2", "u2", "a2", "u3", "a3 that was cut", "u4"), uuid.Nil, 4, 1, 0},
		"questions without the answers":       {path("s at 2", "u7", "u8", "u in place of all", "u9"), called.HeadID, 3, 1, 0},
		"questions below a known beginning":   {path("s", "u7", "u8", "u in place of all", "u9"), called.HeadID, 3, 0, 2},
		"a prompt amid the questions":         {path("s", "u7", "s at 2", "u more", "u8", "u in place of all", "u9"), called.HeadID, 5, 0, 2},
		"one question without its answer":     {path("s", "u7", "c", "t", "a7", "u8", "u in place of all", "u9"), called.HeadID, 6, 0, 6},
		"questions of another chat":           {path("s", "u7", "u in place of all", "u8"), uuid.Nil, 2, 0, 2},
		"nothing that is known":               {path("u of another chat", "a of another chat", "u4"), uuid.Nil, 0, 0, 0},
	} {
		for _, session := range []bool{true, false} {
			p, err := s.Recognize(t.Context(), c, tree.History{Messages: test.history, Session: session})
			if !session {
				test.known, test.prompt, test.head = test.alone, p.Prompt, uuid.Nil
			}
			if err != nil || p.Known != test.known || p.Prompt != test.prompt || test.head != uuid.Nil && p.HeadID != test.head || len(p.Rest) != len(test.history)-p.Known {
				t.Errorf("%s, session %t: %+v, %v", name, session, p, err)
			}
			var tokens int64
			for _, m := range test.history[:p.Known] {
				cost, err := s.Cost(t.Context(), m)
				noError(t, err)
				tokens += int64(cost)
			}
			if p.Tokens != tokens {
				t.Errorf("%s, session %t: %d tokens, want %d", name, session, p.Tokens, tokens)
			}
		}
	}
	before := count(t, s, c)
	history := path("s2", "u1", "a1", "u2", "a2", "u3", "a3")
	for i := range 3 { // each turn with another prompt
		history[0] = path(fmt.Sprint("s at ", i))[0]
		history = append(history, path(fmt.Sprint("u more ", i), fmt.Sprint("a more ", i))...)
		must(s.AppendPath(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: history, Session: true}))(t)
	}
	if n := count(t, s, c) - before; n != 6 {
		t.Errorf("three turns stored %d messages", n)
	}
}

// TestCompacted holds that a session whose agent put a summary in the place of all answers
// goes on behind them, with an edit below the summary.
func TestCompacted(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	appendPath(t, s, c, path("s", "u1", "a1", "u2", "c", "t", "a2"))
	for _, test := range []struct {
		history []*chat.Message
		stored  int
	}{
		{path("s", "u1", "u2", "u the summary", "u3"), 2},
		{path("s", "u1", "u2", "u the summary", "u3"), 0},
		{path("s", "u1", "u2", "u the summary", "u3", "a3", "u4", "a4"), 3},
		{path("s", "u1", "u2", "u the summary", "u3 edited", "a5"), 2},
		{path("s", "u1", "u2", "u3 edited", "u the second summary", "u6"), 2},
	} {
		before := count(t, s, c)
		must(s.AppendPath(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: test.history, Session: true}))(t)
		if n := count(t, s, c) - before; n != test.stored {
			t.Errorf("%d messages are new, want %d", n, test.stored)
		}
	}
	var branch []string
	for m, err := range s.Branch(t.Context(), c, must(s.Conversation(t.Context(), c))(t).HeadID, 20) {
		noError(t, err)
		branch = append(branch, chat.Read(m.Body).Text())
	}
	if got := strings.Join(branch, "|"); got != "s|u1|a1|u2||t|a2|u the summary|u3 edited|a5|u the second summary|u6" {
		t.Error(got)
	}
}

// TestRepetition holds that a session goes on where what its history begins with was said
// twice, and the history left one of them out.
func TestRepetition(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	whole := appendPath(t, s, c, path("u1", "a1", "u1", "a1", "u2", "a2"))
	p, err := s.Recognize(t.Context(), c, tree.History{Messages: path("u1", "a1", "u2", "a2", "u3"), Session: true})
	if err != nil || p.HeadID != whole.HeadID || p.Known != 4 || p.Tokens != whole.Tokens*4/6 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestOlderForm holds that the path hashes of an older canonical form are made anew
// when a history is looked for.
func TestOlderForm(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := uuid.New()
	question := appendPath(t, s, c, path("s", "u1"))
	steps := must(s.AppendChain(t.Context(), c, question.HeadID, []tree.NewMessage{
		{Message: chat.Read([]byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"recall","arguments":"{}"}}]}`))},
		{Message: chat.Read([]byte(`{"role":"tool","tool_call_id":"a","content":"x"}`))},
	}, tree.Auxiliary()))(t).Messages
	must(s.Append(t.Context(), c, steps[1].ID, tree.NewMessage{Message: path("a1")[0]}, tree.Behind(question.HeadID)))(t)
	long := path("s", "u1", "a1", "u2")
	for i := range 25 { // more than are read at once
		long = append(long, path(fmt.Sprint("a", i), fmt.Sprint("u", i))...)
	}
	if p, err := s.Recognize(t.Context(), c, tree.History{Messages: long[:4]}); err != nil || p.Known != 3 { // behind what the client never saw
		t.Errorf("%+v, %v", p, err)
	}
	head := appendPath(t, s, c, long).HeadID
	_, err := pool.Exec(t.Context(), `update nodes set path_hash = substring(sha256(path_hash) for 16)`)
	noError(t, err)
	_, err = pool.Exec(t.Context(), `update conversations set path_form = null`)
	noError(t, err)
	if p, err := s.Recognize(t.Context(), c, tree.History{Messages: long}); err != nil || p.HeadID != head || p.Known != len(long) {
		t.Errorf("%+v, %v", p, err)
	}
}
