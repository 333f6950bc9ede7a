package llm_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// events is a stream whose chunks have these deltas, and what comes after.
func events(end string, deltas ...string) llmtest.Behaviour {
	var b strings.Builder
	for _, delta := range deltas {
		b.WriteString(`data: {"choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n")
	}
	return llmtest.Raw(200, "text/event-stream; charset=utf-8", b.String()+end)
}

const (
	finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	done   = "data: [DONE]\n\n"
)

// Servers differ in how they cut tool calls up. Calls that name no id, share one, or hand
// over an object are mended.
func TestToolCallDeltas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deltas []string
		calls  string
	}{
		"as OpenAI": {[]string{
			`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
		}, `[{"function":{"arguments":"{\"x\":1}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"b","type":"function"}]`},
		"in turns": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}]}`,
			`{"tool_calls":[{"index":1,"function":{"arguments":"[1"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"[0"}}]}`,
			`{"tool_calls":[{"index":1,"function":{"arguments":"]"}},{"index":0,"function":{"arguments":"]"}}]}`,
		}, `[{"function":{"arguments":"[0]","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"[1]","name":"g"},"id":"b","type":"function"}]`},
		"index 0 for all": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"f","arguments":"[]"}}]}`,
		}, `[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"[]","name":"f"},"id":"b","type":"function"}]`},
		"no index": {[]string{
			`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`,
			`{"tool_calls":[{"function":{"arguments":"}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}`,
		}, `[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"b","type":"function"}]`},
		"all repeated, another id each time": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"\"k\""}}]}`,
			`{"tool_calls":[{"index":0,"id":"z","function":{"arguments":":1}"}}]}`,
		}, `[{"function":{"arguments":"{\"k\":1}","name":"f"},"id":"a","type":"function"}]`},
		"custom tool": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":"select"}}]}`,
			`{"tool_calls":[{"index":0,"custom":{"input":" 1 < 2"}}]}`,
		}, `[{"custom":{"input":"select 1 < 2","name":"sql"},"id":"a","type":"custom"}]`},
		"members of the provider's own": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"A<B"}}}]}`,
		}, `[{"extra_content":{"google":{"thought_signature":"A<B"}},"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"}]`},
		"no id": {[]string{
			`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`,
		}, `[{"function":{"arguments":"{}","name":"f"},"id":"call_","type":"function"}]`},
		"an object": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}]}`,
		}, `[{"function":{"arguments":"{\"x\": 1}","name":"f"},"id":"a","type":"function"}]`},
		"null": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
		}, `[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"}]`},
		"one id": {[]string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]}`,
		}, `[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"call_","type":"function"}]`},
		"neither id nor index": {[]string{
			`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`,
			`{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`,
		}, `[{"function":{"arguments":"{}","name":"f"},"id":"call_","type":"function"},{"function":{"arguments":"{}","name":"f"},"id":"call_","type":"function"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, events(finish+done, test.deltas...))
			res, deltas := streamCalls(t, client(t, s), request())
			got := regexp.MustCompile(`"call_\w+"`).ReplaceAllString(string(res.Message), `"call_"`) // an id that was made here
			check.Equal(t, "the message", got, `{"role":"assistant","content":null,"tool_calls":`+test.calls+`}`)
			if deltas != len(test.deltas) || res.FinishReason != "tool_calls" || res.Model != "gpt-4o" {
				t.Errorf("%d deltas, %+v", deltas, res)
			}
		})
	}
}

// streamCalls streams an answer of calls with an id each, in deltas whose pieces say the
// same as its message.
func streamCalls(t *testing.T, m llm.Model, req llm.Request) (res llm.Response, deltas int) {
	t.Helper()
	type call struct {
		Index    *int
		ID, Type string
		Function struct{ Name, Arguments string }
		Custom   struct{ Name, Input string }
	}
	streamed := map[int]call{}
	res, err := m.Stream(deadline(t, timeout), req, func(d llm.Delta) error {
		deltas++
		var pieces []call
		if err := json.Unmarshal(d.ToolCalls, &pieces); err != nil {
			return err
		}
		for _, p := range pieces {
			if p.Index == nil {
				t.Fatalf("a piece has no index: %s", d.ToolCalls)
			}
			c := streamed[*p.Index]
			c.ID, c.Type = c.ID+p.ID, c.Type+p.Type
			c.Function.Name, c.Function.Arguments = c.Function.Name+p.Function.Name, c.Function.Arguments+p.Function.Arguments
			c.Custom.Name, c.Custom.Input = c.Custom.Name+p.Custom.Name, c.Custom.Input+p.Custom.Input
			streamed[*p.Index] = c
		}
		return nil
	})
	check.NoError(t, err)
	var message struct {
		Calls []call `json:"tool_calls"`
	}
	check.NoError(t, json.Unmarshal(res.Message, &message))
	ids := map[string]bool{}
	for i, c := range message.Calls {
		s := streamed[i]
		if s.Type = cmp.Or(s.Type, "function"); c != s || c.ID == "" || ids[c.ID] {
			t.Errorf("the stream's call is %+v, and the message's %+v", s, c)
		}
		ids[c.ID] = true
	}
	return res, deltas
}

// Not all streams look like OpenAI's.
func TestOddStreams(t *testing.T) {
	t.Parallel()
	const stop = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	for name, test := range map[string]struct {
		does   llmtest.Behaviour
		text   string
		finish string
		kind   error
	}{
		"no [DONE]":                {events(stop, `{"content":"hi"}`), "hi", "stop", nil},
		"no finish reason":         {events(done, `{"content":"hi"}`), "hi", "", nil},
		"no blank line at the end": {events(stop+"data: [DONE]", `{"content":"hi"}`), "hi", "stop", nil},
		"neither":                  {events("", `{"content":"hi"}`), "hi", "", llm.ErrUnavailable},
		"comments and other names": {events(": ping\n\nevent: message\nid: 7\n"+stop+done, `{"content":"hi"}`), "hi", "stop", nil},
		"lines ended by CRLF": {llmtest.Raw(200, "text/event-stream",
			"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n"), "hi", "", nil},
		"an error of null":      {events(`data: {"error":null,"choices":[]}`+"\n\n"+stop+done, `{"content":"hi"}`), "hi", "stop", nil},
		"other choices":         {events(`data: {"choices":[{"index":1,"delta":{"content":"no"}}]}`+"\n\n"+stop+done, `{"content":"hi"}`), "hi", "stop", nil},
		"content in parts":      {events(stop+done, `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, `{"content":[{"type":"text","text":"hi"}]}`), "hi", "stop", nil},
		"reasoning beside":      {events(stop+done, `{"reasoning_content":"hm","content":null}`, `{"content":"hi"}`), "hi", "stop", nil},
		"one JSON object":       {llmtest.Raw(200, "application/json", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`), "hi", "stop", nil},
		"rate limit midway":     {events(`data: {"error":{"message":"x","type":"tokens","code":"rate_limit_exceeded"}}`+"\n\n", `{"content":"hi"}`), "hi", "", llm.ErrRateLimited},
		"a number midway":       {events(`data: {"error":{"message":"x","code":502}}`+"\n\n", `{"content":"hi"}`), "hi", "", llm.ErrUnavailable},
		"bad key midway":        {events(`data: {"error":{"type":"authentication_error"}}`+"\n\n", `{"content":"hi"}`), "hi", "", llm.ErrAuth},
		"a string midway":       {events(`data: {"error":"`+secret+`"}`+"\n\n", `{"content":"hi"}`), "hi", "", llm.ErrUnavailable},
		"too long, once begun":  {events(`data: {"error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}`+"\n\n", `{"content":"hi"}`), "hi", "", llm.ErrPromptTooLong},
		"broken JSON midway":    {events("data: {\"choices\":[\n\n"+stop+done, `{"content":"hi"}`), "hi", "", llm.ErrBadResponse},
		"a call and then a cut": {events("", `{"content":"hi"}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`), "hi", "", llm.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, test.does)
			res, err := modes["stream"](t, client(t, s), deadline(t, timeout), request())
			if test.kind != nil {
				wantError(t, err, test.kind)
			} else if err != nil {
				t.Fatal(err)
			}
			if res.Text != test.text || res.FinishReason != test.finish || string(res.Message) != `{"role":"assistant","content":"hi"}` {
				t.Errorf("%+v, message %s", res, res.Message)
			}
		})
	}
}

// A server that leaves the stream open after its finish reason doesn't hold up
// the answer.
func TestOpenAfterFinish(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.HangAtEnd("All of it."))
	ctx := deadline(t, timeout)
	res, err := modes["stream"](t, client(t, s), ctx, request())
	if err != nil || res.Text != "All of it." || res.FinishReason != "stop" || res.CompletionTokens == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if ctx.Err() != nil {
		t.Error("it came when the call's own time was over")
	}
}

// An error of the caller's ends the stream at once and comes back as it is.
func TestCallerStops(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Endless())
	enough := errors.New("enough")
	calls := 0
	res, err := client(t, s).Stream(deadline(t, timeout), request(), func(llm.Delta) error {
		if calls++; calls == 3 {
			return enough
		}
		return nil
	})
	if err != enough || calls != 3 {
		t.Errorf("%v after %d deltas", err, calls)
	}
	check.Equal(t, "the text", res.Text, strings.Repeat(llmtest.Text(8<<10), 3))
}

// The connection is given up, so the server stops working.
func TestCancelReachesTheServer(t *testing.T) {
	t.Parallel()
	for mode, call := range modes {
		s := llmtest.NewServer(t, llmtest.Endless())
		c := client(t, s, func(config *llm.OpenAIConfig) { config.MaxAnswerBytes = 1 << 30 })
		ctx, cancel := context.WithCancel(deadline(t, timeout))
		go func() {
			defer cancel()
			for len(s.Requests()) == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}()
		_, err := call(t, c, ctx, request())
		wantError(t, err, llm.ErrCanceled)
		for until := time.Now().Add(timeout); s.Abandoned() != 1; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: the server still sends", mode)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, value string
		min, max    time.Duration
	}{
		{"Retry-After", "", 0, 0},
		{"Retry-After", "2", 2 * time.Second, 2 * time.Second},
		{"Retry-After", "0.5", time.Second / 2, time.Second / 2},
		{"Retry-After", "-3", 0, 0},
		{"Retry-After", "NaN", 0, 0},
		{"Retry-After", "1e300", 24 * time.Hour, 24 * time.Hour},
		{"Retry-After", "soon", 0, 0},
		{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 50 * time.Minute, time.Hour},
		{"Retry-After", "Mon, 01 Jan 2001 00:00:00 GMT", 0, 0},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(test.name+" "+test.value, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t)
			c := client(t, s, func(config *llm.OpenAIConfig) {
				config.HTTPClient = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 429, Header: http.Header{test.name: {test.value}}, Body: http.NoBody, Request: r}, nil
				})}
			})
			_, err := c.Complete(deadline(t, timeout), request())
			if e := wantError(t, err, llm.ErrRateLimited); e.RetryAfter < test.min || e.RetryAfter > test.max {
				t.Errorf("%v", e.RetryAfter)
			}
		})
	}
}
