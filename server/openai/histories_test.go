package openai_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// TestOddHistories holds that a history is known by its bytes' meaning, and by nothing that only looks alike.
func TestOddHistories(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	complete := func(messages ...string) completion {
		t.Helper()
		c := a.complete("acme", chatBody(store, messages...), "X-Coppice-Session", "odd")
		if got := a.prompt(); got != strings.Join(messages, " ") {
			t.Errorf("the model was given %s, want %v", got, messages)
		}
		return c
	}
	hi := said("user", "Hi")
	depth := func(c completion) int { return int(a.message(c.conversation, c.head).Depth) }
	size := func() int { return a.messages(complete(hi).conversation) }
	first := complete(hi)
	n := size()
	for i, test := range []struct {
		messages   []string
		depth, new int
	}{
		{[]string{hi, hi}, 3, 2}, // the same message twice
		{[]string{hi, hi}, 3, 1},
		{[]string{said("user", "Caf\u00e9")}, 2, 2},
		{[]string{said("user", "Cafe\u0301")}, 2, 2}, // another text
		{[]string{`{"role":"user","content":"Caf\u00e9"}`}, 2, 1},
		{[]string{`{"content":[{"text":"Caf\u00e9","type":"text"}],"role":"user","name":null}`}, 2, 1},
		{[]string{said("developer", "Be brief."), hi}, 3, 3},
		{[]string{said("system", "Be brief."), hi}, 3, 1},
		{[]string{hi, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"a","content":""}`}, 4, 3},
		{[]string{hi, `{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"type":"function","id":"a"}],"content":""}`, `{"role":"tool","content":[{"type":"text","text":""}],"tool_call_id":"a"}`}, 4, 1},
		{[]string{hi, `{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"b","content":""}`}, 4, 3},
		{[]string{hi, said("assistant", "No."), said("user", "Why?")}, 4, 3},                                                           // edited in the middle
		{[]string{hi, said("assistant", "Yes."), said("assistant", "Yes."), said("user", "Why?")}, 5, 3},                               // an answer twice
		{[]string{hi, said("assistant", "Yes."), said("user", "Why?")}, 4, 2},                                                          // what an earlier test may have
		{[]string{hi, `{"role":"assistant","content":"Yes.","refusal":"","annotations":[],"audio":null}`, said("user", "Why?")}, 4, 1}, // an empty refusal
	} {
		c := complete(test.messages...)
		if got := depth(c); got != test.depth-1 || c.conversation != first.conversation {
			t.Errorf("history %d has depth %d, want %d, in %s", i, got, test.depth, c.conversation)
		}
		after := size()
		if got := after - n - 1; got != test.new {
			t.Errorf("history %d stored %d messages, want %d", i, got, test.new)
		}
		n = after
	}
}

// TestEmptyMessages holds that a message that says nothing goes to the model, where
// nothing is recorded.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Record: true})
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	for empty, recorded := range map[string]int{said("system", ""): 0, said("user", ""): 0, `{"role":"assistant","content":null}`: 0, `{"role":"assistant"}`: 0, `{"role":"user","content":[{"type":"text","text":""}]}`: 1} {
		messages := []string{empty, said("user", "Hi")}
		before := len(a.listed("acme"))
		got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody("", messages...))
		if n := len(a.listed("acme")) - before; a.prompt() != strings.Join(messages, " ") || n != recorded {
			t.Errorf("%s: %d conversations, %s", empty, n, got)
		}
	}
}

// TestHistoryWithoutIDs holds that the steps of a turn with calls, which the AI SDK
// sends whole and without an id, go on where they left off, of two chats that begin
// alike each at its own answer.
func TestHistoryWithoutIDs(t *testing.T) {
	t.Parallel()
	call := func(id string) llmtest.Behaviour {
		return llmtest.CallTools(llmtest.ToolCall{ID: id, Name: "weather", Arguments: "{}"})
	}
	a := setup{script: []llmtest.Behaviour{call("c1"), llmtest.Answer("7 degrees."), call("c2"), llmtest.Answer("8 degrees."), llmtest.Answer("9 degrees."), llmtest.Answer("10 degrees.")}}.serve(t)
	const tools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"},"strict":null}]`
	const question = `{"role":"user","content":[{"type":"input_text","text":"How warm?"}]}`
	step := func(id string) string {
		return question + `,{"type":"function_call","call_id":"` + id + `","name":"weather","arguments":"{}"},{"type":"function_call_output","call_id":"` + id + `","output":"warm"}`
	}
	ask := func(input string) response { return a.create(`{"model":"wood",` + tools + `,"input":[` + input + `]}`) }

	first := ask(question)
	second := ask(step("c1"))
	if branch, nodes := a.said(second); nodes != 4 || len(branch) != 4 || nodeOf(t, first.ID).Conversation != nodeOf(t, second.ID).Conversation {
		t.Errorf("%d messages, %q", nodes, branch)
	}
	ask(question)            // another chat, which begins alike
	again := ask(step("c1")) // asked for again: a sibling of the answer
	if _, nodes := a.said(again); nodes != 6 || again.ID == second.ID {
		t.Errorf("%d messages", nodes)
	}
	other := ask(step("c2"))
	if branch, nodes := a.said(other); nodes != 8 || len(branch) != 4 {
		t.Errorf("%d messages, %q", nodes, branch)
	}
	// Another tenant's history meets nothing of it.
	body, _ := a.ask(200, "other", "POST", "/responses", `{"model":"wood",`+tools+`,"input":[`+step("c1")+`]}`)
	if nodeOf(t, responseIn(t, body).ID).Conversation == nodeOf(t, first.ID).Conversation {
		t.Error("another tenant's conversation was found")
	}
}

// TestLongHistoriesTakeTurns holds that histories of more messages than one commit
// takes are stored in turns, as imports are: those of one tenant leave connections to
// the database for others. No history can be stored while the test holds a lock. So
// those that have a turn keep it, and all others are told that they waited in vain.
func TestLongHistoriesTakeTurns(t *testing.T) {
	t.Parallel()
	const most, conns = server.DefaultMaxImports / 2, server.DefaultMaxImports/2 + 3
	const asked = 3 * conns
	pool := dbtest.New(t, dbtest.MaxConns(conns))
	a := setup{pool: pool}.serve(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	hasty := a.again(func(s *setup) { s.timeout = 2 * time.Second })
	lock := check.Must(pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig))(t)
	defer lock.Close(context.Background())
	check.Must(lock.Exec(t.Context(), "begin; lock table conversations in share row exclusive mode"))(t)
	waiting := func() (n int) {
		check.NoError(t, lock.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'relation' and not granted
			and relation = 'conversations'::regclass and database = (select oid from pg_database where datname = current_database())`).Scan(&n))
		return n
	}
	var stored, refused atomic.Int32
	var ended sync.WaitGroup
	for i := range asked {
		body := chatBody(store, slices.Repeat([]string{said("user", fmt.Sprint("History ", i))}, tree.MaxChain+1)...)
		ended.Go(func() {
			switch status, got, _ := hasty.send("acme", "POST", "/chat/completions", body); {
			case status == 200:
				stored.Add(1)
			case status == 429 && strings.Contains(got, "imports"):
				refused.Add(1)
			default:
				t.Errorf("%d: %s", status, got)
			}
		})
	}
	over := func() bool { return waiting() > most }
	a.eventually(func() bool { return over() || refused.Load() == asked-most && waiting() == most })
	if over() {
		t.Errorf("over %d histories of one tenant are stored at a time", most)
	}
	if status, got, _ := a.send("other", "GET", "/models", ""); status != 200 {
		t.Errorf("another tenant's request: %d %s", status, got)
	}
	check.Must(lock.Exec(t.Context(), "rollback"))(t)
	ended.Wait()
	if stored, refused := stored.Load(), refused.Load(); stored != most || refused != asked-most {
		t.Errorf("%d histories were stored and %d refused, want %d and %d", stored, refused, most, asked-most)
	}
}

// TestHistoryThatEndsInAnAnswer holds that a history which ends in an answer is
// answered, stored or not: some clients send what came of a stream that broke.
func TestHistoryThatEndsInAnAnswer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer(" that is cut."))
	hi, broken := said("user", "What is a coppice?"), said("assistant", "A wood")
	for path, body := range map[string]string{"/responses": `"input":[` + hi + `,` + broken + `]`, "/chat/completions": `"messages":[` + hi + `,` + broken + `]`} {
		for _, store := range []string{"true", "false"} {
			_, header := a.ask(200, "acme", "POST", path, `{"model":"wood","store":`+store+`,`+body+`}`)
			if got := a.prompt(); !strings.HasSuffix(got, broken) || (header.Get("X-Coppice-Head-Id") != "") != (store == "true") {
				t.Errorf("%s, store %s: the model was given %s; %v", path, store, got, header)
			}
		}
	}
}
