package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// path makes a path of messages: u is the user's, a the assistant's, s the system's, c a call, t its result.
func path(texts ...string) (all []*chat.Message) {
	roles := map[byte]string{'u': "user", 'a': "assistant", 's': "system"}
	for _, text := range texts {
		body := fmt.Appendf(nil, `{"role":%q,"content":%q}`, roles[text[0]], text)
		switch text[0] {
		case 'c':
			body = []byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
		case 't':
			body = fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c","content":%q}`, text)
		}
		all = append(all, chat.Read(body))
	}
	return all
}

func appendPath(t testing.TB, s *tree.Store, conversation uuid.UUID, all []*chat.Message) tree.Path {
	t.Helper()
	return must(s.Histories().Append(t.Context(), tree.NewConversation{ID: conversation}, tree.History{Messages: all}))(t)
}

// count is how many messages a conversation has, over all branches.
func count(t testing.TB, s *tree.Store, conversation uuid.UUID) int {
	t.Helper()
	return len(gather(t, s.Tree(t.Context(), conversation, 0)))
}

func TestAppendPath(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	first := appendPath(t, s, c, path("s", "u1"))
	check.That(t, first.Known == 0 && first.Tokens != 0, "%+v", first)
	again := appendPath(t, s, c, path("s", "u1"))
	check.That(t, again.Known == 2 && again.HeadID == first.HeadID && again.Tokens == first.Tokens,
		"the same path again is %+v, was %+v", again, first)
	// What anybody appends below is found, too.
	answer := mustAppend(t, s, c, first.HeadID, tree.NewMessage{Message: chat.Read([]byte(`{"role":"assistant","content":[{"type":"text","text":"a1"}],"refusal":null}`))})
	next := appendPath(t, s, c, path("s", "u1", "a1", "u2"))
	m, err := s.Message(t.Context(), c, next.HeadID)
	check.That(t, err == nil && m.ParentID == answer.ID && next.Known == 3 && m.PathTokens == next.Tokens,
		"%+v, %v: %+v; want it below %s", next, err, m, answer.ID)
	chain := must(s.AppendChain(t.Context(), c, next.HeadID, []tree.NewMessage{user("x"), user("y")}))(t).Messages
	if p := appendPath(t, s, c, slices.Concat([]*chat.Message{chat.Read([]byte(`{"role":"developer","content":"s"}`))}, path("u1", "a1", "u2"),
		[]*chat.Message{chat.Read(chain[0].Body), chat.Read(chain[1].Body)})); p.Known != 6 || p.HeadID != chain[1].ID {
		t.Errorf("below a chain: %+v", p)
	}
	// An edit is a sibling, a changed system prompt a root beside the first.
	edited := appendPath(t, s, c, path("s", "u1", "a1", "u2 edited"))
	m, err = s.Message(t.Context(), c, edited.HeadID)
	check.That(t, err == nil && m.Siblings == (tree.Siblings{Index: 2, Count: 2}) && m.ParentID == answer.ID, "%+v, %v", m, err)
	check.Equal(t, "known of another prompt", appendPath(t, s, c, path("s2", "u1")).Known, 0)
	check.Equal(t, "messages", count(t, s, c), 9)
	// A conversation that nobody began so has no paths.
	plain := newConversation(t, s)
	mustAppend(t, s, plain.ID, uuid.Nil, tree.NewMessage{Message: path("u1")[0]})
	check.Equal(t, "known of a plain conversation", appendPath(t, s, plain.ID, path("u1")).Known, 0)
	fork := must3(s.Fork(t.Context(), c, next.HeadID, tree.NewConversation{}))(t)
	check.Equal(t, "known of a fork", must(s.Histories().Recognize(t.Context(), fork.ID, tree.History{Messages: path("s")}))(t).Known, 0)
	refused(t, "another tenant finds it", second(s.ForTenant("other").Histories().Recognize(t.Context(), c, tree.History{Messages: path("s")})), fault.NotFound)
	p, err := s.ForTenant("other").Histories().Append(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: path("s", "u1")})
	check.That(t, errors.Is(err, fault.Conflict), "another tenant appends to it: %+v, %v", p, err)
}

// An error names the message by its place in the whole path.
func TestAppendPathRefuses(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c, absent := uuid.New(), uuid.New()
	appendPath(t, s, c, path("u1", "a1"))
	orphan := chat.Read([]byte(`{"role":"tool","tool_call_id":"1","content":"x"}`))
	large := chat.Read([]byte(`{"role":"user","content":"` + strings.Repeat("x", tree.MaxBodyBytes) + `"}`))
	for _, test := range []struct {
		path  []*chat.Message
		field string
	}{
		{append(path("u1", "a1"), orphan), "messages[2].tool_call_id"},
		{append(path("u1", "a1", "u2"), orphan), "messages[3].tool_call_id"},
		{append(path("u1", "a1"), large), "messages[2]"},
		{append(path("u1", "a1", "u2"), large), "messages[3]"},
		{nil, "messages"},
	} {
		for _, c := range []uuid.UUID{c, absent} {
			_, err := s.Histories().Append(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: test.path})
			check.That(t, fault.Of(err) != nil && fault.Of(err).Field == test.field,
				"%d messages: %v, want field %s", len(test.path), err, test.field)
		}
	}
	refused(t, "what refused paths made", second(s.Conversation(t.Context(), absent)), fault.NotFound)
	check.Equal(t, "messages after refused paths", count(t, s, c), 2)
}

// Each message is stored once, whoever appends it at the same time and however it is written.
func TestAppendPathConcurrently(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	heads := make([]uuid.UUID, 12)
	var wg sync.WaitGroup
	for i := range heads {
		wg.Go(func() {
			all := path("s", "u1", "a1", fmt.Sprint("u2 ", i%3))
			if i%2 == 1 {
				all[1] = chat.Read([]byte(`{"content":[{"type":"text","text":"u1"}],"role":"user"}`))
			}
			p, err := s.Histories().Append(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: all[:len(all)-i%2]})
			if err == nil {
				p, err = s.Histories().Append(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: all})
			}
			check.That(t, err == nil, "%v", err)
			heads[i] = p.HeadID
		})
	}
	wg.Wait()
	slices.SortFunc(heads, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	n, different := count(t, s, c), len(slices.Compact(heads))
	check.That(t, n == 6 && different == 3, "%d messages and %d heads, want 6 and 3", n, different)
}

// A known path costs its conversation's row and its deepest message's. Hashes that begin alike are told apart.
func TestRecognizeReadsOneMessage(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := uuid.New()
	all := long(1000)
	head := appendPath(t, s, c, all).HeadID
	history := tree.History{Messages: slices.Concat(all, path("u new")), Session: true}
	var last chat.PathHash
	for _, m := range history.Messages {
		last = last.Child(m)
	}
	must(pool.Exec(t.Context(), "analyze nodes"))(t)
	find := func(s *tree.Store) error {
		p, err := s.Histories().Recognize(t.Context(), c, history)
		check.That(t, p.Known == len(all) && p.HeadID == head, "found %+v, %v", p, err)
		return err
	}
	e := effortOf(t, pool, tree.DefaultTenant, find)
	check.That(t, e.rows <= 4, "it read %+v", e) // each is counted in its index, too
	must(pool.Exec(t.Context(), `
		update nodes set path_hash = substring($1::bytea for 7) || '\x000000000000000000' where id = $2`, last[:], uuid.UUID(head)))(t)
	p, err := s.Histories().Recognize(t.Context(), c, history)
	check.That(t, err == nil && p.Known == len(all)-1, "a hash that only begins alike is found: %+v, %v", p, err)
}

func long(n int) []*chat.Message {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%c message %d of a long path, which says neither much nor little, as messages do", "ua"[i%2], i)
	}
	return path(texts...)
}

func TestChangeMetadata(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	m := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	for _, metadata := range []string{`{"a": 1}`, ``} {
		to := func(json.RawMessage) json.RawMessage { return json.RawMessage(metadata) }
		noError(t, s.ChangeMetadata(t.Context(), c.ID, m.ID, to))
		got, err := s.Message(t.Context(), c.ID, m.ID)
		check.That(t, err == nil && string(got.Metadata) == metadata && string(got.Body) == string(m.Body), "%s: %+v, %v", metadata, got, err)
	}
	refused(t, "a list", s.ChangeMetadata(t.Context(), c.ID, m.ID, func(json.RawMessage) json.RawMessage { return json.RawMessage(`[]`) }), fault.Invalid)
	same := func(was json.RawMessage) json.RawMessage { return was }
	refused(t, "no message", s.ChangeMetadata(t.Context(), c.ID, c.ID, same), fault.NotFound)
}

// What an import adds below a path, and a reply's answer, is recognized as an append is.
func TestEverythingBelowAPathIsKnown(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	first := appendPath(t, s, c, path("s", "u1"))
	running := tree.Reply{ConversationID: c, MessageID: uuid.New(), ParentID: first.HeadID, ServerID: "a", Model: "m"}
	noError(t, s.Replies().Begin(t.Context(), running, false))
	answer := tree.NewMessage{ID: running.MessageID, Message: path("a1")[0]}
	must(s.Append(t.Context(), c, first.HeadID, answer, tree.EndsReply("a", tree.ReplyEvents{})))(t)
	imported := uuid.New()
	must(s.Import(t.Context(), tree.Bundle{
		Conversation: tree.NewConversation{ID: c},
		Nodes:        []tree.BundleNode{{ID: imported, ParentID: running.MessageID, Body: path("u2")[0].Raw}},
	}))(t)
	p, err := s.Histories().Recognize(t.Context(), c, tree.History{Messages: path("s", "u1", "a1", "u2", "a2")})
	check.That(t, err == nil && p.Known == 4 && p.HeadID == imported, "%+v, %v, want the imported message %s", p, err, imported)
}

// A session goes on below its last known answer, though its beginning changed. Another history has a path of its own.
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
			p, err := s.Histories().Recognize(t.Context(), c, tree.History{Messages: test.history, Session: session})
			if !session {
				test.known, test.prompt, test.head = test.alone, p.Prompt, uuid.Nil
			}
			check.That(t, err == nil && p.Known == test.known && p.Prompt == test.prompt &&
				(test.head == uuid.Nil || p.HeadID == test.head) && len(p.Rest) == len(test.history)-p.Known,
				"%s, session %t: %+v, %v", name, session, p, err)
			var tokens int64
			for _, m := range test.history[:p.Known] {
				cost := must(s.Cost(t.Context(), m))(t)
				tokens += int64(cost)
			}
			check.That(t, p.Tokens == tokens, "%s, session %t: %d tokens, want %d", name, session, p.Tokens, tokens)
		}
	}
	before := count(t, s, c)
	history := path("s2", "u1", "a1", "u2", "a2", "u3", "a3")
	for i := range 3 { // each turn with another prompt
		history[0] = path(fmt.Sprint("s at ", i))[0]
		history = append(history, path(fmt.Sprint("u more ", i), fmt.Sprint("a more ", i))...)
		must(s.Histories().Append(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: history, Session: true}))(t)
	}
	check.Equal(t, "messages that three turns stored", count(t, s, c)-before, 6)
}

// A session whose agent put a summary in place of all answers goes on behind them, with an edit below the summary.
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
		must(s.Histories().Append(t.Context(), tree.NewConversation{ID: c}, tree.History{Messages: test.history, Session: true}))(t)
		check.Equal(t, "new messages", count(t, s, c)-before, test.stored)
	}
	var branch []string
	for m, err := range s.Branch(t.Context(), c, must(s.Conversation(t.Context(), c))(t).HeadID, 20) {
		noError(t, err)
		branch = append(branch, chat.Read(m.Body).Text())
	}
	check.Equal(t, "the branch", strings.Join(branch, "|"), "s|u1|a1|u2||t|a2|u the summary|u3 edited|a5|u the second summary|u6")
}

// A session goes on where its beginning was said twice, and the history left one of them out.
func TestRepetition(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := uuid.New()
	whole := appendPath(t, s, c, path("u1", "a1", "u1", "a1", "u2", "a2"))
	p, err := s.Histories().Recognize(t.Context(), c, tree.History{Messages: path("u1", "a1", "u2", "a2", "u3"), Session: true})
	check.That(t, err == nil && p.HeadID == whole.HeadID && p.Known == 4 && p.Tokens == whole.Tokens*4/6, "%+v, %v", p, err)
}

// The path hashes of an older canonical form are made anew when a history is looked for.
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
	check.Equal(t, "known behind what the client never saw", must(s.Histories().Recognize(t.Context(), c, tree.History{Messages: long[:4]}))(t).Known, 3)
	head := appendPath(t, s, c, long).HeadID
	must(pool.Exec(t.Context(), `update nodes set path_hash = substring(sha256(path_hash) for 16)`))(t)
	must(pool.Exec(t.Context(), `update conversations set path_form = null`))(t)
	p, err := s.Histories().Recognize(t.Context(), c, tree.History{Messages: long})
	check.That(t, err == nil && p.HeadID == head && p.Known == len(long), "%+v, %v", p, err)
}
