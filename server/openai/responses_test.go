package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A setup says what a server of a test is made of.
type setup struct {
	pool     *pgxpool.Pool // nil for a database of its own
	contexts summarize.Config
	replies  reply.Config
	script   []llmtest.Behaviour
}

// serve makes an api of it, and the services behind it.
func (s setup) serve(t *testing.T) *api {
	t.Helper()
	if s.pool == nil {
		s.pool = dbtest.New(t)
	}
	a := &api{t: t, upstream: llmtest.NewServer(t, s.script...), store: tree.New(s.pool), secrets: map[string]string{}}
	ring := keys.New(s.pool)
	for _, tenant := range []string{"acme", "other"} {
		_, secret, err := ring.Create(t.Context(), tenant, "")
		if err != nil {
			t.Fatal(err)
		}
		a.secrets[tenant] = secret
	}
	model, err := llm.NewOpenAI(llm.OpenAIConfig{BaseURL: a.upstream.URL(), Model: "wood"})
	if err != nil {
		t.Fatal(err)
	}
	if s.contexts.Settings == (summarize.Settings{}) {
		s.contexts.Settings = summarize.Defaults()
	}
	contexts, err := summarize.New(a.store, s.contexts)
	if err != nil {
		t.Fatal(err)
	}
	s.replies.Store, s.replies.Contexts, s.replies.Models = a.store, contexts, []llm.Model{model}
	replies, err := reply.New(s.replies)
	if err != nil {
		t.Fatal(err)
	}
	h, err := server.New(server.Config{Store: a.store, Keys: ring, Loopback: true, Contexts: contexts, Replies: replies, Surfaces: []server.Surface{openai.Surface()}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	recover, stop := context.WithCancel(context.Background())
	recovered := make(chan struct{})
	go func() {
		defer close(recovered)
		replies.Recover(recover)
	}()
	t.Cleanup(func() {
		stop()
		<-recovered
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = replies.Close(ended)
		web.Close()
	})
	a.url = web.URL
	return a
}

// get sends a request of acme's and reads its answer as JSON.
func (a *api) get(method, path, body string) map[string]any {
	a.t.Helper()
	got, _ := a.ask(200, "acme", method, path, body)
	var out map[string]any
	if err := json.Unmarshal([]byte(got), &out); err != nil {
		a.t.Fatalf("%s: %v", got, err)
	}
	return out
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for begin := time.Now(); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// kept counts what acme has stored.
func (a *api) kept() (conversations int) {
	a.t.Helper()
	list, err := a.store.ForTenant("acme").Conversations(a.t.Context(), tree.ConversationFilter{}, tree.Paging{})
	if err != nil {
		a.t.Fatal(err)
	}
	return len(list.Data)
}

// codex is a request as Codex sends it.
const codex = `{"model":"wood","instructions":"Be terse.","store":false,"stream":true,"include":["reasoning.encrypted_content"],"parallel_tool_calls":true,
	"reasoning":{"summary":"auto"},"prompt_cache_key":"thread","client_metadata":{"x":"y"},"tool_choice":"auto","tools":[
		{"type":"function","name":"shell","parameters":{"type":"object"},"strict":false},
		{"type":"namespace","name":"mcp__clock","description":"","tools":[{"type":"function","name":"now","parameters":{"type":"object"}}]},{"type":"web_search"}],
	"input":[{"type":"message","role":"developer","id":"msg_0199","content":[{"type":"input_text","text":"Mind the hazel."}]},
		{"type":"message","role":"user","id":"msg_019a","content":[{"type":"input_text","text":"What time is it?"}]}%s]}`

// TestStoreFalse holds that of a request with store: false nothing is kept, and
// that a client which sends its whole history each time, as Codex does, gets on.
func TestStoreFalse(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_1", Name: "mcp__clock__now", Arguments: `{}`}
	a := setup{script: []llmtest.Behaviour{llmtest.CallTools(call), llmtest.Answer("Noon."), llmtest.Answer("Plain."), llmtest.Fail(500)}}.serve(t)
	streamed, header := a.ask(200, "acme", "POST", "/responses", fmt.Sprintf(codex, ""))
	if header.Get("X-Coppice-Head-Id") != "" || header.Get("X-Coppice-Conversation-Id") != "" {
		t.Errorf("the header names what isn't there: %v", header)
	}
	for _, want := range []string{"event: response.created\n", `"type":"function_call"`, `"namespace":"mcp__clock","name":"now"`, `"store":false`, `"usage":{`, "data: [DONE]"} {
		if !strings.Contains(streamed, want) {
			t.Errorf("the stream lacks %s: %s", want, streamed)
		}
	}
	sent := a.upstream.Requests()[0]
	if tools := string(sent.Body); !strings.Contains(tools, `"mcp__clock__now"`) || strings.Contains(tools, "web_search") {
		t.Errorf("the model was offered %s", tools)
	}
	if got := a.prompt(); got != `{"role":"system","content":"Be terse."} {"role":"developer","content":"Mind the hazel."} {"role":"user","content":"What time is it?"}` && !strings.Contains(got, "Mind the hazel.") {
		t.Errorf("the model was given %s", got)
	}
	again, _ := a.ask(200, "acme", "POST", "/responses", fmt.Sprintf(codex, `,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},
		{"type":"function_call","id":"fc_1","call_id":"call_1","namespace":"mcp__clock","name":"now","arguments":"{}"},
		{"type":"function_call_output","id":"fco_0199","call_id":"call_1","output":"12:00"}`))
	if !strings.Contains(again, `"text":"Noon."`) || !strings.Contains(a.prompt(), `"tool_call_id":"call_1"`) {
		t.Errorf("%s after %s", again, a.prompt())
	}
	id := finalID(t, again)
	a.ask(404, "acme", "GET", "/responses/"+id, "")
	a.ask(404, "acme", "DELETE", "/responses/"+id, "")
	if got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"hi","previous_response_id":"`+id+`"}`); !strings.Contains(got, "previous_response_not_found") {
		t.Errorf("%s", got)
	}
	if r := a.create(`{"model":"wood","input":"hi","store":false}`); r.Status != "completed" || r.Output[0].Content[0].Text != "Plain." {
		t.Errorf("%+v", r)
	}
	a.ask(502, "acme", "POST", "/responses", `{"model":"wood","input":"hi","store":false}`)
	if n := a.kept(); n != 0 {
		t.Errorf("%d conversations are kept", n)
	}
}

// TestStoreFalseContinues holds that an answer that is not kept may go on from one
// that is.
func TestStoreFalseContinues(t *testing.T) {
	t.Parallel()
	a := setup{script: []llmtest.Behaviour{llmtest.Answer("It is a wood."), llmtest.Answer("Indeed."), llmtest.Answer("Ten years.")}}.serve(t)
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	a.create(`{"model":"wood","input":"Really?","store":false,"previous_response_id":"` + first.ID + `"}`)
	if got := a.prompt(); !strings.Contains(got, "It is a wood.") || !strings.HasSuffix(got, `{"role":"user","content":"Really?"}`) {
		t.Errorf("the model was given %s", got)
	}
	a.create(`{"model":"wood","input":"How often?","previous_response_id":"` + first.ID + `"}`)
	if got := a.prompt(); strings.Contains(got, "Really?") {
		t.Errorf("the model was given %s", got)
	}
}

// TestClientLeaves holds that an answer that nobody keeps ends with its client.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	a := setup{script: []llmtest.Behaviour{llmtest.HangMidway("It is a wood that is cut"), llmtest.Answer("Hello.")}, replies: reply.Config{MaxPerTenant: 1}}.serve(t)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", a.url+"/openai/v1/responses", strings.NewReader(`{"model":"wood","input":"hi","store":false,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.secrets["acme"])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	// Only once the model speaks is it the first request that it hangs for.
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "event: response.output_text.delta\n" {
			break
		}
	}
	leave()
	eventually(t, "room for the next answer", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), "POST", a.url+"/openai/v1/responses", strings.NewReader(`{"model":"wood","input":"hi","store":false}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.secrets["acme"]}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
}

// TestTruncation holds that an input that doesn't fit is refused before a model is
// asked and before anything is stored, unless it may be folded.
func TestTruncation(t *testing.T) {
	t.Parallel()
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens = 3000, 300
	script := make([]llmtest.Behaviour, 10)
	for i := range script {
		script[i] = llmtest.Answer("They talk of hazel, and of how it grows again.")
	}
	a := setup{contexts: summarize.Config{Settings: settings}, script: script}.serve(t)
	long := strings.Repeat("Hazel grows again after it was cut to the ground. ", 80) // about 880 tokens
	previous := ""
	for range 3 {
		r := a.create(`{"model":"wood","truncation":"auto","input":"` + long + `"` + previous + `}`)
		previous = `,"previous_response_id":"` + r.ID + `"`
	}
	asked := len(a.upstream.Requests())
	for _, extra := range []string{``, `,"truncation":"disabled"`, `,"store":false`, `,"stream":true`} {
		got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"`+long+long+`"`+previous+extra+`}`)
		if !strings.Contains(got, `"code":"context_length_exceeded"`) || !strings.Contains(got, `"param":"input"`) {
			t.Errorf("%s: %s", extra, got)
		}
	}
	a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"`+long+long+long+long+`"}`)
	if len(a.upstream.Requests()) != asked || a.kept() != 1 {
		t.Errorf("the model was asked, or %d conversations are kept", a.kept())
	}
	for _, extra := range []string{``, `,"store":false`} {
		r := a.create(`{"model":"wood","truncation":"auto","input":"And now? ` + long + `"` + previous + extra + `}`)
		if r.Status != "completed" || !strings.Contains(a.prompt(), "And now?") {
			t.Errorf("%+v", r)
		}
	}
}

// TestInputTokens holds that what is counted is what a model would read.
func TestInputTokens(t *testing.T) {
	t.Parallel()
	a := setup{script: []llmtest.Behaviour{llmtest.Answer("It is a wood.")}}.serve(t)
	count := func(body string) float64 {
		t.Helper()
		got := a.get("POST", "/responses/input_tokens", body)
		if got["object"] != "response.input_tokens" {
			t.Errorf("%v", got)
		}
		return got["input_tokens"].(float64)
	}
	one := count(`{"input":"What is a coppice?"}`)
	if two := count(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},{"role":"user","content":"What is a coppice?"}]}`); one < 5 || two != 2*one {
		t.Errorf("%v tokens, and twice that %v", one, two)
	}
	if with := count(`{"model":null,"input":"What is a coppice?","instructions":"Be terse.","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`); with <= one+10 {
		t.Errorf("instructions and a tool cost %v", with-one)
	}
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	if more := count(`{"input":"What is a coppice?","previous_response_id":"` + first.ID + `"}`); more <= 2*one {
		t.Errorf("with the branch it is %v", more)
	}
	if a.kept() != 1 || len(a.upstream.Requests()) != 1 {
		t.Error("counting stored something, or asked a model")
	}
}

func parse(id string) (uuid.UUID, error) { return uuid.Parse(id) }
