package recognize_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// Messages as a client first sent or got them.
const (
	prompt = `{"role":"system","content":"Be brief."}`
	asked  = `{"role":"user","content":"How warm is it?"}`
	called = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Köln\",\"days\":1}"}}]}`
	result = `{"role":"tool","tool_call_id":"c1","content":"12 degrees"}`
	answer = `{"role":"assistant","content":"It is warm."}`
	next   = `{"role":"user","content":"And tomorrow?"}`
)

// TestFind holds, by the smallest history that shows it, what is known again of a turn
// with a call: how many messages, and of these how many are the client's prompt.
func TestFind(t *testing.T) {
	t.Parallel()
	s := recognize.Service{Store: tree.New(dbtest.New(t))}
	turn := func(session string, messages ...string) (turn recognize.Turn) {
		turn.Session = session
		for _, m := range messages {
			turn.Messages = append(turn.Messages, chat.Read([]byte(m)))
		}
		return turn
	}
	find := func(turn recognize.Turn) recognize.Match {
		t.Helper()
		return check.Must(s.Find(t.Context(), turn))(t)
	}
	conversations := map[string]uuid.UUID{}
	for _, session := range []string{"", "s"} {
		first := turn(session, prompt, asked, called, result, answer)
		p := find(first)
		check.Need(t, p.New && p.Known == 0, "nothing is stored, and %+v is found", p)
		check.Must(s.Store.Histories().Append(t.Context(), tree.NewConversation{ID: p.ConversationID}, first.History))(t)
		stopped := turn(session, prompt, asked, `{"role":"assistant","content":"It was warm, and"}`, next, strings.Replace(called, "null", `"I look."`, 1), result, next)
		stopped.Metadata = []json.RawMessage{nil, nil, json.RawMessage(`{"reply":{"status":"stopped"}}`), nil, nil, nil, nil}
		check.Must(s.Store.Histories().Append(t.Context(), tree.NewConversation{ID: p.ConversationID}, stopped.History))(t)
		conversations[session] = p.ConversationID
	}
	arguments := func(text string) string {
		return fmt.Sprintf(`{"role":"assistant","name":"model","tool_calls":[{"id":"c1","type":"function","function":{"name":"invalid","arguments":%q}}]}`, text)
	}
	for name, test := range map[string]struct {
		session       string
		history       []string
		known, prompt int
	}{
		"as it came":                      {"", []string{prompt, asked, called, result, answer, next}, 5, 0},
		"arguments written anew":          {"", []string{prompt, asked, arguments(`{ "days": 1.0, "at": "K\u00f6ln", "unit": "C" }`), result, answer, next}, 5, 0},
		"another call":                    {"", []string{prompt, asked, `{"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"weather","arguments":"{}"}}]}`, next}, 2, 0},
		"white space at the end, a name":  {"", []string{prompt, asked, called, result, `{"role":"assistant","name":"model","content":[{"type":"text","text":"It is warm. \r\n"}]}`, next}, 5, 0},
		"the beginning of a stopped one":  {"", []string{prompt, asked, `{"role":"assistant","content":"It was w "}`, next, called}, 4, 0},
		"that, to be continued":           {"", []string{prompt, asked, `{"role":"assistant","content":"It was w"}`}, 2, 0},
		"a call without its text":         {"", []string{prompt, asked, `{"role":"assistant","content":"It was w"}`, next, called, result, next}, 7, 0},
		"a call with another text":        {"", []string{prompt, asked, `{"role":"assistant","content":"It was w"}`, next, strings.Replace(called, "null", `"I?"`, 1), result, next}, 4, 0},
		"that of a whole one":             {"", []string{prompt, asked, called, result, `{"role":"assistant","content":"It is w"}`, next}, 4, 0},
		"another prompt":                  {"", []string{`{"role":"system","content":"It is noon."}`, asked, called, result, answer, next}, -1, 0},
		"another prompt of a session":     {"s", []string{`{"role":"system","content":"It is noon."}`, asked, called, result, answer, next}, 5, 1},
		"the last messages of a session":  {"s", []string{result, answer, next}, 2, 0},
		"an answer that a session hasn't": {"s", []string{asked, `{"role":"assistant","content":"It is cold."}`, next}, 0, 0},
	} {
		p := find(turn(test.session, test.history...))
		if test.known < 0 {
			check.That(t, p.New, "%s: it goes on in %+v", name, p)
			continue
		}
		if p.ConversationID != conversations[test.session] || p.Known != test.known || p.Prompt != test.prompt || len(p.Rest) != len(test.history)-p.Known {
			t.Errorf("%s: %d known, %d of them the prompt, %d new: %+v", name, p.Known, p.Prompt, len(p.Rest), p)
		}
	}
	other := turn("", prompt, asked)
	other.User = "else"
	check.That(t, find(other).New, "another user's chat that begins alike goes on")
}

// What an agent adds to a question in tags may change or go once the question was answered.
func TestReminder(t *testing.T) {
	t.Parallel()
	s := recognize.Service{Store: tree.New(dbtest.New(t))}
	turn := func(said string, more ...string) (turn recognize.Turn) {
		for _, m := range append([]string{said}, more...) {
			turn.Messages = append(turn.Messages, chat.Read([]byte(m)))
		}
		return turn
	}
	const (
		monday = `{"role":"user","content":[{"type":"text","text":"<my-note>\nIt is Monday.\n</my-note>"},{"type":"text","text":"<my_dir>a</my_dir>\nHi"}]}`
		bare   = `{"role":"user","content":"Hi"}`
	)
	first := turn(monday, answer)
	conversation := check.Must(s.Find(t.Context(), first))(t).ConversationID
	check.Must(s.Store.Histories().Append(t.Context(), tree.NewConversation{ID: conversation}, first.History))(t)
	for name, test := range map[string]struct {
		turn  recognize.Turn
		known int // -1: in another conversation
	}{
		"it goes on":                {turn(bare, answer, next), 2},
		"it isn't answered":         {turn(bare), 0},
		"it was answered otherwise": {turn(bare, `{"role":"assistant","content":"No."}`, next), 0},
		"a question in other tags":  {turn(`{"role":"user","content":"<b>Hi</b>"}`, answer, next), -1},
		"nothing but a reminder":    {turn(`{"role":"user","content":"<my-note>Hi</my-note>"}`, answer, next), -1},
	} {
		p := check.Must(s.Find(t.Context(), test.turn))(t)
		check.That(t, p.New == (test.known < 0) && (p.New || p.ConversationID == conversation && p.Known == test.known), "%s: %+v", name, p)
	}
}

// TestSession holds what names a session, the surest first.
func TestSession(t *testing.T) {
	t.Parallel()
	for i, test := range []struct {
		headers  []string // names and values in turn
		metadata map[string]string
		want     string
	}{
		{nil, nil, ""},
		{[]string{"Prompt-Cache-Key", "1", "X-Request-Id", "1"}, map[string]string{"user": "1"}, ""},
		{[]string{"X-Coppice-Session", "1", "Thread-Id", "2"}, nil, "X-Coppice-Session\x001"},
		{[]string{"Thread-Id", "1", "Session-Id", "2"}, nil, "Thread-Id\x001"},
		{[]string{"Session_id", "1"}, nil, "Session_id\x001"},
		{[]string{"X-Opencode-Session", "1", "X-Session-Affinity", "2"}, nil, "X-Opencode-Session\x001"},
		{[]string{"X-OpenWebUI-Chat-Id", "1"}, nil, "X-Openwebui-Chat-Id\x001"},
		{[]string{"X-Claude-Code-Session-Id", "1", "X-Session-Id", "2"}, nil, "X-Claude-Code-Session-Id\x001"},
		{[]string{"X-LiteLLM-Session-Id", "1"}, nil, "X-Litellm-Session-Id\x001"},
		{[]string{"X-Session-Affinity", "1"}, map[string]string{"session_id": "2"}, "X-Session-Affinity\x001"},
		{nil, map[string]string{"chat_id": "1", "thread_id": "2"}, "metadata.thread_id\x002"},
	} {
		h := http.Header{}
		for i := 0; i < len(test.headers); i += 2 {
			if h.Set(test.headers[i], test.headers[i+1]); test.headers[i] == "Session_id" {
				h = http.Header{"Session_id": {test.headers[i+1]}}
			}
		}
		check.Equal(t, fmt.Sprintf("case %d", i), recognize.Session(h, test.metadata), test.want)
	}
}

// TestRetryOfWhatIsStopping holds that a retry which comes while its first attempt is
// being stopped, because its client went, gets an answer of its own, on any server.
func TestRetryOfWhatIsStopping(t *testing.T) {
	t.Parallel()
	for name, retry := range map[string]recognize.Attempt{
		"counted": {Retried: true}, "keyed": {Key: "k"},
		"counted elsewhere": {Retried: true, Stops: true}, "keyed elsewhere": {Key: "k", Stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			model := &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
				<-release // though ctx has ended
				if ctx.Err() != nil {
					return llm.Response{}, ctx.Err()
				}
				return llmtest.Response("ok"), nil
			}}
			pool := dbtest.New(t)
			store := tree.New(pool)
			contexts := check.Must(summarize.New(store, summarize.Config{}))(t)
			var servers [2]recognize.Service
			for i := range servers {
				replies := check.Must(reply.New(reply.Config{Store: store, Contexts: contexts, Models: []llm.Model{model}, SaveEvery: time.Hour}))(t)
				servers[i] = recognize.Service{Store: store, Replies: replies}
			}
			record := func(s recognize.Service, a recognize.Attempt) (*reply.Reply, error) {
				turn := recognize.Turn{History: tree.History{Messages: []*chat.Message{chat.Read([]byte(asked))}}}
				return s.Record(t.Context(), turn, recognize.Recording{Ask: func(recognize.Match) reply.Request { return reply.Request{} }, Attempt: a})
			}
			first := check.Must(record(servers[0], recognize.Attempt{Key: retry.Key}))(t)
			check.Eventually(t, "a request to the model", func() bool { return len(model.Requests()) > 0 })
			ctx, leave := context.WithCancel(t.Context())
			first.Attend(ctx, true)
			leave()
			check.Eventually(t, "the first attempt to be stopped", func() bool { return first.Stopping(true) })
			queries := pool.Stat().AcquireCount()
			go func() { // once the retry looks for the first attempt
				for pool.Stat().AcquireCount() < queries+2 {
					time.Sleep(time.Millisecond)
				}
				close(release)
			}()
			again := servers[0]
			if retry.Stops {
				again = servers[1]
			}
			second := check.Must(record(again, retry))(t)
			end, err := second.Wait(t.Context())
			check.That(t, err == nil && end.Status == reply.StatusCompleted, "the retry's answer is %s: %v, %v", end.Status, end.Err, err)
		})
	}
}
