package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

const hello = `{"model":"claude-x","max_tokens": 9,"messages":[{"role":"user","content":"Hello"}],"new_member":[1 ]}`

// TestPassedThrough holds that the upstream gets the client's bytes, query and headers
// under its own key, and the client the upstream's bytes.
func TestPassedThrough(t *testing.T) {
	t.Parallel()
	const stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x\"}}\n\n: a comment\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\r\n\r\n" +
		"event: new_event\ndata: {\"type\":\"new_event\"}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	const message = `{"type":"message", "content":[{"type":"text","text":"Hi"}] }`
	const refusal = `{"type":"error","error":{"type":"rate_limit_error","message":"Slowly."} }`
	var query string
	say := func(status int, kind, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			query = r.URL.RequestURI()
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Request-Id", "req_1")
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		status int
		want   string
		header string
		stored int
	}{
		"a stream":  {say(200, "text/event-stream", stream), 200, stream, "Request-Id", 2},
		"a message": {say(200, "application/json", message), 200, message, "Request-Id", 2},
		"an error":  {say(429, "application/json", refusal, "Retry-After", "7"), 429, refusal, "Retry-After", 1},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newProvider(t, test.answer)
			a := newAPI(t, provider)
			status, got, header := a.send("POST", "messages?beta=true", hello, "Anthropic-Version", "2023-06-01", "Anthropic-Beta", "x", "Cookie", "c", "X-Coppice-Session", "s")
			check.That(t, status == test.status && got == test.want && header.Get(test.header) != "", "%d %q %v", status, got, header)
			body, sent := provider.last()
			if body != hello || query != "/v1/messages?beta=true" || sent.Get("X-Api-Key") != "sk-ant" || sent.Get("Authorization") != "" ||
				sent.Get("Anthropic-Version") != "2023-06-01" || sent.Get("Anthropic-Beta") != "x" || sent.Get("Cookie") != "" || sent.Get("X-Coppice-Session") != "" {
				t.Errorf("the upstream got %s %q %v", query, body, sent)
			}
			if _, branches := a.branches(); len(branches) != 1 || strings.Count(branches[0], "\n") != test.stored-1 {
				t.Errorf("stored: %q", branches)
			}
		})
	}
}

// A client learns that its answer broke off, as it does from the upstream itself.
func TestBroken(t *testing.T) {
	t.Parallel()
	for kind, half := range map[string]string{
		"text/event-stream": "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Half\"}}\n\n",
		"application/json":  `{"type":"message",`,
	} {
		a := newAPI(t, newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, half)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		res, err := a.do(t.Context(), "POST", "messages", hello)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		check.That(t, err != nil, "%s: half an answer passes for a whole one", kind)
	}
}

// TestSpent holds that what the server's own key pays for is told, as the tenant's.
func TestSpent(t *testing.T) {
	t.Parallel()
	const answer = `{"type":"message","model":"claude-x-1","content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":2}}`
	say := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}
	a, told := newAPI(t, newProvider(t, say, say)), ""
	a.config.Spent = func(ctx context.Context, model string, sent, given int) {
		told += fmt.Sprintln(access.TenantOf(ctx), model, sent, given)
	}
	for _, key := range []string{"sk-ant", ""} {
		a.config.APIKey = key
		a.start()
		a.send("POST", "messages", hello)
	}
	check.Equal(t, "told", told, tree.DefaultTenant+" claude-x 7 2\n")
}

// TestKeys holds which key the upstream gets.
func TestKeys(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	a := newAPI(t, provider)
	a.config.APIKey = ""
	a.start()
	for _, test := range []struct{ header, value, want string }{
		{"Authorization", "Bearer " + a.key, ""}, // beside x-api-key, which is the same
		{"Authorization", "Bearer sk-ant-oat", "Bearer sk-ant-oat"},
	} {
		status, _, _ := a.send("POST", "messages", hello, test.header, test.value)
		_, sent := provider.last()
		got := sent.Get("Authorization")
		check.That(t, (got == test.want || status != 200) && sent.Get("X-Api-Key") == "", "%s: %d, %v", test.value, status, sent)
	}
}

// TestRecord holds that the blocks of an answer stand in its metadata byte for byte, and
// that a retry of the request gets them again, whole or as a stream.
func TestRecord(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	a := newAPI(t, provider)
	first, header := a.ask(hello)
	m := check.Must(a.store.Message(t.Context(), uuid.MustParse(header.Get("X-Coppice-Conversation-Id")), uuid.MustParse(header.Get("X-Coppice-Head-Id"))))(t)
	const blocks = `[{"type":"thinking","thinking":"Thought 1.","signature":"c2ln1"},{"type":"text","text":"Answer 1."}]`
	var metadata struct {
		Anthropic struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(m.Metadata, &metadata); err != nil || string(metadata.Anthropic.Content) != blocks || m.Reasoning != "Thought 1." || !strings.Contains(first, blocks) {
		t.Errorf("%v: %s", err, m.Metadata)
	}
	for _, body := range []string{hello, strings.Replace(hello, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)} {
		got, again := a.ask(body, "X-Stainless-Retry-Count", "1")
		check.That(t, again.Get("X-Coppice-Head-Id") == header.Get("X-Coppice-Head-Id") && len(provider.bodies) == 1,
			"a retry is answered anew: %v", again)
		var back []string
		for _, b := range blocksIn(t, got) {
			back = append(back, string(b))
		}
		check.Equal(t, "what a retry gets", "["+strings.Join(back, ",")+"]", blocks)
	}
}

// The upstream's answer ends with its client, and what came until then is stored.
func TestClientGoes(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	provider := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Half\"}}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	a := newAPI(t, provider)
	ctx, leave := context.WithCancel(t.Context())
	res := check.Must(a.do(ctx, "POST", "messages", hello))(t)
	check.Must(res.Body.Read(make([]byte, 10)))(t)
	leave()
	<-gone
	conversation := uuid.MustParse(res.Header.Get("X-Coppice-Conversation-Id"))
	check.Eventually(t, "the end of the reply", func() bool {
		return len(check.Must(a.store.Replies().Of(t.Context(), conversation))(t)) == 0
	})
	if _, branches := a.branches(); len(branches) != 1 || !strings.HasSuffix(branches[0], `{"role":"assistant","content":"Half"}`) {
		t.Errorf("stored: %q", branches)
	}
}

// TestUnrecorded holds which requests leave nothing in the tree.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	a := newAPI(t, newProvider(t))
	a.ask(hello, "X-Coppice-Record", "false")
	a.ask(hello, "X-Claude-Code-Session-Id", "s") // has no tools: it asks for a title or the like
	a.ask(`{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`)
	a.ask(strings.Replace(hello, "Hello", strings.Repeat("long ", tree.MaxBodyBytes/5), 1))
	n, _ := a.branches()
	check.Equal(t, "conversations", n, 0)
}

// TestManaged holds that with X-Coppice-Context: managed the upstream reads the branch's
// context, in which a summary stands for the older part.
func TestManaged(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	a := newAPI(t, provider)
	a.contexts.Settings = summarize.Defaults()
	a.contexts.Settings.MaxContextTokens, a.contexts.Settings.ReservedTokens = 4000, 500
	a.start()
	var messages []string
	for i := range 20 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":"Question %d: %s"}`, i, strings.Repeat("shrubs and hedges ", 90)), fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"sig%d"},{"type":"text","text":"Answer %d"}]}`, i, i))
	}
	body := `{"model":"beech","max_tokens":9,"system":"Be brief.","messages":[` + strings.Join(messages, ",") + `,{"role":"user","content":"And now?"}]}`
	a.ask(body, "X-Coppice-Context", "managed")
	got, _ := provider.last()
	if len(got) > len(body)/2 || strings.Contains(got, "sig0") || !strings.Contains(got, `"signature":"sig19"`) || !strings.Contains(got, "summary") || !strings.HasPrefix(got, `{"model":"beech","max_tokens":9,"system":"Be brief.","messages":[{"role":"user",`) {
		t.Errorf("the upstream got %s", got)
	}
	a.ask(body)
	got, _ = provider.last()
	check.Equal(t, "what the upstream got unasked", got, body)
}

// A model of chat completions is asked, and its answer comes back in blocks.
func TestOwnModel(t *testing.T) {
	t.Parallel()
	a := newAPI(t, newProvider(t))
	a.model.Script(llmtest.Think("Let me.", "Hi."))
	got, _ := a.ask(`{"model":"tree","max_tokens":100,"temperature":0.5,"stop_sequences":["END"],"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`)
	sent := a.model.Requests()[0]
	if string(sent.Body) == "" || len(sent.Messages) != 2 || string(sent.Messages[0]) != `{"role":"system","content":"Be brief."}` || sent.MaxCompletionTokens != 100 || *sent.Temperature != 0.5 || !strings.Contains(string(sent.Body), `"stop":["END"]`) {
		t.Errorf("asked: %s", sent.Body)
	}
	check.Has(t, "answered", got, `"content":[{"type":"thinking","thinking":"Let me.","signature":""},{"type":"text","text":"Hi."}],"stop_reason":"end_turn"`)
}

// TestResultOfASession holds that a session may send the result of a call alone, and that
// the result of a tool that failed is stored as it came.
func TestResultOfASession(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.model.Script(llmtest.CallTools(llmtest.ToolCall{ID: "c", Name: "f", Arguments: "{}"}), llmtest.Answer("No."))
	const failed = `{"type":"tool_result", "tool_use_id":"c","is_error":true,"content":"Exit code 1"}`
	for _, content := range []string{`"Run it."`, `[` + failed + `]`} {
		a.ask(`{"model":"wood","max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"messages":[{"role":"user","content":`+content+`}]}`, "X-Coppice-Session", "s")
	}
	sent := a.model.Requests()[1].Messages
	check.That(t, len(sent) == 3 && string(sent[2]) == `{"role":"tool","content":"Error: Exit code 1","tool_call_id":"c"}`, "asked: %s", sent)
	c := check.Must(a.store.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{}))(t).Data[0]
	stored := check.Must(a.store.Transcript(t.Context(), c.ID, c.HeadID, tree.Paging{}))(t).Data
	check.That(t, len(stored) == 4 && strings.Contains(string(stored[2].Metadata), `"content":[`+failed+`]`), "stored: %+v", stored)
}

// TestErrors holds that errors have Anthropic's form, wherever they come from.
func TestErrors(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.model.Script(llmtest.Fail(429), llmtest.Fail(400), llmtest.FailMidway("Half"))
	const wood = `{"model":"wood","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`
	for _, test := range []struct {
		body   string
		header []string
		status int
		want   string
	}{
		{`{`, []string{}, 400, `"type":"invalid_request_error"`},
		{hello, []string{}, 404, `"type":"not_found_error"`},
		{wood, []string{"X-Api-Key", "cop_wrong"}, 401, `"type":"authentication_error"`},
		{wood, []string{}, 429, `"type":"rate_limit_error"`},
		{wood, []string{}, 400, `"type":"invalid_request_error"`},
		{wood, []string{}, 200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""},
	} {
		a.tells(test.status, "POST", "messages", test.body, test.want, test.header...)
	}
	status, got, _ := a.send("GET", "files", "")
	check.That(t, status == 404 && strings.HasPrefix(got, `{"type":"error",`), "no route: %d %s", status, got)
}

// TestCountAndModels holds who counts tokens and lists models.
func TestCountAndModels(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	both, own := newAPI(t, provider), newAPI(t, nil)
	count := func(a *api, model, more string) string {
		_, got, _ := a.send("POST", "messages/count_tokens", `{"model":"`+model+`","messages":[{"role":"user","content":"Hello"}]`+more+`}`)
		return got
	}
	few, many := count(own, "wood", ""), count(own, "wood", `,"tools":[{"name":"f","description":"`+strings.Repeat("shrubs ", 100)+`"}]`)
	check.That(t, strings.HasPrefix(few, `{"input_tokens":`) && len(many) > len(few), "%s, %s", few, many)
	check.Has(t, "what the upstream says", count(both, "claude-x", ""), "msg_1")
	own.tells(200, "GET", "models", "", `"id":"tree"`)
	own.tells(200, "GET", "models", "", `"first_id":"wood"`)
	own.tells(200, "GET", "models/tree", "", "")
	own.tells(404, "GET", "models/oak", "", "")
}
