package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

const (
	key    = "sk-test-9f3c1a77b2"
	secret = "the launch code is 48151623"
)

// timeout is a deadline that no test means to reach.
const timeout = 30 * time.Second

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, s *llmtest.Server, change ...func(*llm.OpenAIConfig)) *llm.OpenAI {
	t.Helper()
	config := llm.OpenAIConfig{BaseURL: s.URL(), APIKey: key, Model: "gpt-4o", HTTPClient: s.Client()}
	for _, c := range change {
		c(&config)
	}
	return check.Must(llm.NewOpenAI(config))(t)
}

func user(text string) json.RawMessage {
	content, _ := json.Marshal(text)
	return json.RawMessage(`{"role":"user","content":` + string(content) + `}`)
}

func request(messages ...json.RawMessage) llm.Request {
	if messages == nil {
		messages = []json.RawMessage{user(secret)}
	}
	return llm.Request{Messages: messages}
}

// modes are the two ways to ask. Both check what a stream promises: that its
// pieces add up to the response.
var modes = map[string]func(t *testing.T, m llm.Model, ctx context.Context, req llm.Request) (llm.Response, error){
	"complete": func(_ *testing.T, m llm.Model, ctx context.Context, req llm.Request) (llm.Response, error) {
		return m.Complete(ctx, req)
	},
	"stream": func(t *testing.T, m llm.Model, ctx context.Context, req llm.Request) (llm.Response, error) {
		var reasoning, content, refusal strings.Builder
		res, err := m.Stream(ctx, req, func(d llm.Delta) error {
			if d.Reasoning == "" && d.Content == "" && d.Refusal == "" && d.ToolCalls == nil {
				t.Error("an empty delta")
			}
			reasoning.WriteString(d.Reasoning)
			content.WriteString(d.Content)
			refusal.WriteString(d.Refusal)
			return nil
		})
		if reasoning.String() != res.Reasoning || content.String() != res.Text || refusal.String() != res.Refusal {
			t.Errorf("the deltas add up to %q, %q and %q; the response has %q, %q and %q",
				reasoning.String(), content.String(), refusal.String(), res.Reasoning, res.Text, res.Refusal)
		}
		return res, err
	},
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	megabyte := llmtest.Text(1 << 20)
	calls := []llmtest.ToolCall{
		{ID: "call_a", Name: "search", Arguments: `{"query":"größte Städte <&>","limit":3}`},
		{ID: "call_b", Name: "now", Arguments: "{}"},
	}
	for name, test := range map[string]struct {
		does                  llmtest.Behaviour
		text, refusal, finish string
		message               string // "" for one of role and text alone
	}{
		"text":          {does: llmtest.Answer("Hello, wörld! 👋 <b>&"), text: "Hello, wörld! 👋 <b>&", finish: "stop"},
		"29 characters": {does: llmtest.Answer(llmtest.Text(29)), text: llmtest.Text(29), finish: "stop"},
		"30 characters": {does: llmtest.Answer(llmtest.Text(30)), text: llmtest.Text(30), finish: "stop"},
		"1 MB":          {does: llmtest.Answer(megabyte), text: megabyte, finish: "stop"},
		"echo":          {does: llmtest.Echo(), text: secret, finish: "stop"},
		"truncated":     {does: llmtest.Truncated("This goes on and"), text: "This goes on and", finish: "length"},
		"slow":          {does: llmtest.Slow(time.Millisecond, llmtest.Chunks("a ", "b ", "c")), text: "a b c", finish: "stop"},
		"NUL":           {does: llmtest.Chunks("a\x00", "\x00", "b"), text: "ab", finish: "stop"},
		"refusal": {does: llmtest.Refuse("I can't help with that."), refusal: "I can't help with that.", finish: "stop",
			message: `{"role":"assistant","content":null,"refusal":"I can't help with that."}`},
		"tool calls": {does: llmtest.CallTools(calls...), finish: "tool_calls",
			message: `{"role":"assistant","content":null,"tool_calls":[` +
				`{"function":{"arguments":"{\"query\":\"größte Städte <&>\",\"limit\":3}","name":"search"},"id":"call_a","type":"function"},` +
				`{"function":{"arguments":"{}","name":"now"},"id":"call_b","type":"function"}]}`},
	} {
		for mode, call := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				s := llmtest.NewServer(t, test.does)
				s.RequireKey(key)
				res := check.Must(call(t, client(t, s), deadline(t, timeout), request()))(t)
				want := test.message
				if want == "" {
					content, _ := json.Marshal(test.text)
					want = `{"role":"assistant","content":` + string(content) + `}`
					want = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(want)
				}
				check.Equal(t, "the message", string(res.Message), want)
				check.That(t, res.Text == test.text && res.Refusal == test.refusal && res.FinishReason == test.finish,
					"text %.80q, refusal %q, finish reason %q", res.Text, res.Refusal, res.FinishReason)
				check.That(t, res.Model == "gpt-4o-fake" && res.PromptTokens == 7 && res.CompletionTokens != 0,
					"model %q, %d and %d tokens", res.Model, res.PromptTokens, res.CompletionTokens)
			})
		}
	}
}

// Messages are the caller's bytes: their spaces, order, escapes and numbers.
func TestMessagesByteForByte(t *testing.T) {
	t.Parallel()
	messages := []json.RawMessage{
		json.RawMessage(`{ "content" : "a <b> & \u003c \u00e9 é 👋\u2028" ,` + "\n\t" + `"role":"system"}`),
		json.RawMessage(`{"role":"user","content":[{"type":"text","text":"x"}],"n":1.0e2,"big":12345678901234567890,"dup":1,"dup":2}`),
		json.RawMessage("\n" + `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]} `),
	}
	temperature := 0.1
	for mode, call := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, llmtest.Answer("ok"))
			req := llm.Request{Messages: messages, Temperature: &temperature, MaxOutputTokens: 99, Extra: map[string]json.RawMessage{
				"tools": json.RawMessage(`[ {"type":"function"} ]`), "reasoning_effort": json.RawMessage(`"low"`),
			}}
			check.Must(call(t, client(t, s), deadline(t, timeout), req))(t)
			got := s.Requests()[0]
			stream := ""
			if mode == "stream" {
				stream = `,"stream":true,"stream_options":{"include_usage":true}`
			}
			want := `{"model":"gpt-4o","reasoning_effort":"low","tools":[ {"type":"function"} ],"temperature":0.1,"max_completion_tokens":99` +
				stream + `,"messages":[` + string(bytes.Join([][]byte{messages[0], messages[1], messages[2]}, []byte(","))) + `]}`
			check.Equal(t, "sent", string(got.Body), want)
		})
	}
}

func TestRequestFields(t *testing.T) {
	t.Parallel()
	hot := 0.7
	full := llm.Request{Messages: []json.RawMessage{user("x")}, Temperature: &hot, MaxOutputTokens: 5}
	for _, test := range []struct {
		name, model    string
		legacy         bool
		temperature    bool
		max, legacyMax int
		usage          bool
	}{
		{"plain", "gpt-4o", false, true, 5, 0, true},
		{"reasoning model", "o3-mini", false, false, 5, 0, true},
		{"by way of a gateway", "openai/gpt-5-mini", false, false, 5, 0, true},
		{"chat model of the family", "gpt-5-chat-latest", false, true, 5, 0, true},
		{"unknown model", "in-house", false, true, 5, 0, true},
		{"legacy fields", "mistral-small", true, true, 0, 5, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, llmtest.Answer("ok"))
			c := client(t, s, func(config *llm.OpenAIConfig) { config.Model, config.LegacyFields = test.model, test.legacy })
			check.Must(c.Stream(deadline(t, timeout), full, func(llm.Delta) error { return nil }))(t)
			got := s.Requests()[0]
			if got.Model != test.model || c.Name() != test.model || (got.Temperature != nil) != test.temperature ||
				got.MaxCompletionTokens != test.max || got.MaxTokens != test.legacyMax ||
				bytes.Contains(got.Body, []byte("stream_options")) != test.usage {
				t.Errorf("sent %s", got.Body)
			}
		})
	}
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, req := range map[string]llm.Request{
		"no messages":      {},
		"no JSON":          {Messages: []json.RawMessage{user("x"), json.RawMessage(`{"role":"user","content":"` + secret)}},
		"no object":        {Messages: []json.RawMessage{json.RawMessage(`"` + secret + `"`)}},
		"two objects":      {Messages: []json.RawMessage{json.RawMessage(`{},{}`)}},
		"nothing":          {Messages: []json.RawMessage{nil}},
		"a member of ours": {Messages: []json.RawMessage{user("x")}, Extra: map[string]json.RawMessage{"n": json.RawMessage("2")}},
		"broken extra":     {Messages: []json.RawMessage{user("x")}, Extra: map[string]json.RawMessage{"tools": json.RawMessage("[")}},
		"an option twice": {Messages: []json.RawMessage{user("x")}, Options: llm.Options{Seed: ptr(1)},
			Extra: map[string]json.RawMessage{"seed": json.RawMessage("2")}},
		"NaN": {Messages: []json.RawMessage{user("x")}, Temperature: &nan},
	} {
		for mode, call := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				s := llmtest.NewServer(t) // a request would fail the test
				_, err := call(t, client(t, s), deadline(t, timeout), req)
				wantError(t, err, llm.ErrInvalid)
			})
		}
	}
}

func TestNewOpenAIRefuses(t *testing.T) {
	t.Parallel()
	for _, config := range []llm.OpenAIConfig{
		{},
		{Model: "m", BaseURL: "localhost:11434/v1"},
		{Model: "m", BaseURL: "ftp://host/v1"},
		{Model: "m", BaseURL: "https://" + key + "@host/v1"},
		{Model: "m", BaseURL: "https://host/v1?key=" + key},
		{Model: "m", BaseURL: "https://host/" + key + "%zz"},
		{Model: "m", MaxAnswerBytes: -1},
		{Model: "m", MaxAnswerBytes: 1<<30 + 1},
	} {
		_, err := llm.NewOpenAI(config)
		check.That(t, err != nil && !strings.Contains(err.Error(), key), "%+v: %v", config, err)
	}
	check.Must(llm.NewOpenAI(llm.OpenAIConfig{Model: "m"}))(t)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wantError checks an error's kind, and what every error of a model promises.
func wantError(t *testing.T, err, kind error) *llm.Error {
	t.Helper()
	var e *llm.Error
	check.Need(t, errors.As(err, &e) && errors.Is(err, kind), "error %v (%T), want a *llm.Error of kind %q", err, err, kind)
	check.That(t, e.Model != "", "%v names no model", err)
	for cause := range causes(err) {
		check.Lacks(t, "an error", cause.Error(), key, "48151623", "http://")
	}
	return e
}

// causes walks an error and all that it wraps.
func causes(err error) func(func(error) bool) {
	return func(yield func(error) bool) {
		todo := []error{err}
		for len(todo) > 0 {
			err, todo = todo[0], todo[1:]
			if err == nil {
				continue
			}
			if !yield(err) {
				return
			}
			switch e := err.(type) {
			case interface{ Unwrap() error }:
				todo = append(todo, e.Unwrap())
			case interface{ Unwrap() []error }:
				todo = append(todo, e.Unwrap()...)
			}
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
