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
			check.That(t, deltas == len(test.deltas) && res.FinishReason == "tool_calls" && res.Model == "gpt-4o", "%d deltas, %+v", deltas, res)
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
			check.Need(t, p.Index != nil, "a piece has no index: %s", d.ToolCalls)
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
			} else {
				check.NoError(t, err)
			}
			check.That(t, res.Text == test.text && res.FinishReason == test.finish && string(res.Message) == `{"role":"assistant","content":"hi"}`,
				"%+v, message %s", res, res.Message)
		})
	}
}

// A stream that is left open after its finish reason doesn't hold up the answer.
func TestOpenAfterFinish(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.HangAtEnd("All of it."))
	ctx := deadline(t, timeout)
	res, err := modes["stream"](t, client(t, s), ctx, request())
	check.That(t, err == nil && res.Text == "All of it." && res.FinishReason == "stop" && res.CompletionTokens != 0, "%+v, %v", res, err)
	check.That(t, ctx.Err() == nil, "it came when the call's own time was over")
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
	check.That(t, err == enough && calls == 3, "%v after %d deltas", err, calls)
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
		check.Eventually(t, mode+": the server's end", func() bool { return s.Abandoned() == 1 })
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
			e := wantError(t, err, llm.ErrRateLimited)
			check.That(t, e.RetryAfter >= test.min && e.RetryAfter <= test.max, "%v", e.RetryAfter)
		})
	}
}

// Servers show thoughts under two names, in parts of the content, and within the text.
func TestReasoning(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string   // of a server that doesn't stream
		deltas  []string // of one that does
		reason  string
		text    string
	}{
		"reasoning_content": {`{"reasoning_content":"They greet me.","content":"Hello."}`,
			[]string{`{"role":"assistant","content":null,"reasoning_content":"They greet"}`, `{"reasoning_content":" me.","content":""}`, `{"content":"Hello."}`}, "They greet me.", "Hello."},
		"reasoning": {`{"reasoning":"They greet me.","content":"Hello."}`,
			[]string{`{"reasoning":"They greet","content":""}`, `{"reasoning":" me."}`, `{"content":"Hello.","reasoning":null}`}, "They greet me.", "Hello."},
		"both names, which say the same": {`{"reasoning":"Hm.","reasoning_content":"Hm.","content":"Hello."}`,
			[]string{`{"reasoning":"Hm.","reasoning_content":"Hm."}`, `{"content":"Hello."}`}, "Hm.", "Hello."},
		"of another type": {`{"reasoning":{"effort":"low"},"reasoning_content":7,"content":"Hello."}`,
			[]string{`{"reasoning":{"effort":"low"},"reasoning_content":7,"content":"Hello."}`}, "", "Hello."},
		"parts of the content": {`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"They greet"},{"type":"text","text":" me."}]},{"type":"text","text":"Hello."}]}`,
			[]string{`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"They greet"}]}]}`, `{"content":[{"type":"thinking","thinking":" me."}]}`, `{"content":[{"type":"text","text":"Hello."}]}`},
			"They greet me.", "Hello."},
		"within the text": {`{"content":"\n<think>\nThey greet me.\n</think>\n\nHello."}`,
			[]string{`{"content":"\n"}`, `{"content":"<th"}`, `{"content":"ink>\nThey greet"}`, `{"content":" me.\n</thi"}`, `{"content":"nk>"}`, `{"content":"\n\n"}`, `{"content":"Hello."}`},
			"\nThey greet me.\n", "Hello."},
		"within the text under another name": {`{"content":"<thinking>Hm.</thinking>Hello."}`, []string{`{"content":"<thinking>Hm.</think"}`, `{"content":"ing>Hello."}`}, "Hm.", "Hello."},
		"a tag behind the beginning": {`{"content":"The tag <think>x</think> begins it."}`,
			[]string{`{"content":"The tag <thi"}`, `{"content":"nk>x</think> begins it."}`}, "", "The tag <think>x</think> begins it."},
		"a second element":                    {`{"content":"<think>a</think><think>b</think>c"}`, []string{`{"content":"<think>a</think><think>"}`, `{"content":"b</think>c"}`}, "a", "<think>b</think>c"},
		"no more than the beginning of a tag": {`{"content":" <thin"}`, []string{`{"content":" <th"}`, `{"content":"in"}`}, "", " <thin"},
		"a tag where the server has told the two apart": {`{"reasoning":"Hm.","content":"<think> is a tag."}`,
			[]string{`{"content":"<th"}`, `{"reasoning":"Hm."}`, `{"content":"ink> is a tag."}`}, "Hm.", "<think> is a tag."},
		"NUL": {`{"reasoning":"H\u0000m.","content":"Hello."}`, []string{`{"reasoning":"H\u0000m."}`, `{"content":"Hello."}`}, "Hm.", "Hello."},
		"beside calls": {`{"reasoning":"Hm.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			[]string{`{"reasoning":"Hm."}`, `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`}, "Hm.", ""},
	} {
		t.Run(name+"/complete", func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, llmtest.Raw(200, "application/json", `{"choices":[{"message":`+test.message+`,"finish_reason":"stop"}]}`))
			res, err := client(t, s).Complete(deadline(t, timeout), request())
			wantThought(t, res, err, test.reason, test.text)
		})
		t.Run(name+"/stream", func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, events(finish+done, test.deltas...))
			var reason, text strings.Builder
			res, err := client(t, s).Stream(deadline(t, timeout), request(), func(d llm.Delta) error {
				reason.WriteString(d.Reasoning)
				text.WriteString(d.Content)
				return nil
			})
			wantThought(t, res, err, test.reason, test.text)
			check.Equal(t, "the pieces", reason.String()+"|"+text.String(), test.reason+"|"+test.text)
		})
	}
}

func wantThought(t *testing.T, res llm.Response, err error, reason, text string) {
	t.Helper()
	check.NoError(t, err)
	var m map[string]json.RawMessage
	check.That(t, json.Unmarshal(res.Message, &m) == nil && m["reasoning"] == nil && m["reasoning_content"] == nil, "the message is %s", res.Message)
	check.That(t, res.Reasoning == reason && res.Text == text, "reasoning %q, text %q; want %q, %q", res.Reasoning, res.Text, reason, text)
}

// A model that thinks until its tokens are spent gave no answer; its thoughts are there.
func TestReasoningAlone(t *testing.T) {
	t.Parallel()
	const cut = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}` + "\n\n"
	for _, delta := range []string{`{"reasoning":"Hm. Well."}`, `{"content":"<think>Hm. Well."}`} {
		s := llmtest.NewServer(t, events(cut+done, delta))
		res, err := client(t, s).Stream(deadline(t, timeout), request(), func(llm.Delta) error { return nil })
		e := wantError(t, err, llm.ErrBadResponse)
		if res.Reasoning != "Hm. Well." || res.Message != nil || !strings.Contains(e.Detail, "the model thought") || !strings.Contains(e.Detail, "length") {
			t.Errorf("%+v: %v", res, err)
		}
	}
}

// Reasoning counts to the limit of an answer.
func TestReasoningIsBounded(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, events(finish+done, `{"reasoning":"`+strings.Repeat("x", 700)+`"}`, `{"content":"`+strings.Repeat("y", 400)+`"}`))
	c := client(t, s, func(config *llm.OpenAIConfig) { config.MaxAnswerBytes = 1000 })
	res, err := c.Stream(deadline(t, timeout), request(), func(llm.Delta) error { return nil })
	wantError(t, err, llm.ErrAnswerTooLong)
	check.That(t, len(res.Reasoning) == 700 && res.Text == "", "%d bytes of reasoning, text %q", len(res.Reasoning), res.Text)
}
