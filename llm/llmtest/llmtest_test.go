package llmtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"go.uber.org/goleak"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post asks as any HTTP client would.
func post(t *testing.T, s *llmtest.Server, key, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := s.Client().Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res, string(answer), err
}

const (
	hello    = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	streamed = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

// OpenAI's own client understands what the server sends.
func TestOpenAIClient(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_a", Name: "search", Arguments: `{"query":"x"}`}
	for name, test := range map[string]struct {
		does                   llmtest.Behaviour
		content, refusal, call string
		finish                 string
	}{
		"answer":     {llmtest.Answer("Hello, wörld, and all who are in it!"), "Hello, wörld, and all who are in it!", "", "", "stop"},
		"refusal":    {llmtest.Refuse("I won't do that."), "", "I won't do that.", "", "stop"},
		"tool call":  {llmtest.CallTools(call), "", "", call.Name + call.Arguments, "tool_calls"},
		"truncated":  {llmtest.Truncated("So much to"), "So much to", "", "", "length"},
		"empty":      {llmtest.Empty(), "", "", "", "stop"},
		"echo":       {llmtest.Echo(), "hello", "", "", "stop"},
		"exact size": {llmtest.Answer(llmtest.Text(29)), llmtest.Text(29), "", "", "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, test.does, test.does)
			s.RequireKey("k")
			client := openai.NewClient(option.WithBaseURL(s.URL()), option.WithAPIKey("k"), option.WithHTTPClient(s.Client()))
			params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}
			whole, err := client.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			stream := client.Chat.Completions.NewStreaming(t.Context(), params)
			defer stream.Close()
			var sum openai.ChatCompletionAccumulator
			for stream.Next() {
				if !sum.AddChunk(stream.Current()) {
					t.Error("a chunk that can't be added")
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			for mode, got := range map[string]openai.ChatCompletion{"complete": *whole, "stream": sum.ChatCompletion} {
				choice := got.Choices[0]
				var calls string
				for _, c := range choice.Message.ToolCalls {
					calls += c.Function.Name + c.Function.Arguments
				}
				if choice.Message.Content != test.content || choice.Message.Refusal != test.refusal || calls != test.call || choice.FinishReason != test.finish {
					t.Errorf("%s: %+v", mode, choice)
				}
				if got.Usage.PromptTokens != 7 || got.Model != "m-fake" {
					t.Errorf("%s: usage %+v, model %q", mode, got.Usage, got.Model)
				}
			}
		})
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Answer("first"), llmtest.Fail(429))
	s.Script(llmtest.Raw(200, "text/plain", "third"))
	s.Otherwise(llmtest.Answer("later"))
	var got []string
	for range 5 {
		res, body, err := post(t, s, "k", hello)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == 429 && res.Header.Get("Retry-After") != "1" {
			t.Errorf("header %v", res.Header)
		}
		for _, word := range []string{"first", "rate_limit_exceeded", "third", "later"} {
			if strings.Contains(body, word) {
				got = append(got, word)
			}
		}
	}
	if want := []string{"first", "rate_limit_exceeded", "third", "later", "later"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Answer("ok"))
	s.RequireKey("right")
	const body = `{"model":"m","stream":true,"temperature":0.5,"max_tokens":3,"max_completion_tokens":4,"messages":[{"role":"user",  "content":"hello"}]}`
	if res, answer, err := post(t, s, "wrong", body); err != nil || res.StatusCode != 401 || !strings.Contains(answer, "invalid_api_key") {
		t.Errorf("%q, %v", answer, err)
	}
	if _, _, err := post(t, s, "right", body); err != nil {
		t.Fatal(err)
	}
	if res, _, err := post(t, s, "right", "no JSON"); err != nil || res.StatusCode != 400 {
		t.Error("a request that is no JSON is answered", err)
	}
	got := s.Requests()
	if len(got) != 3 {
		t.Fatalf("%d requests", len(got))
	}
	r := got[1]
	if string(r.Body) != body || string(r.Messages[0]) != `{"role":"user",  "content":"hello"}` || r.Model != "m" || !r.Stream ||
		*r.Temperature != 0.5 || r.MaxTokens != 3 || r.MaxCompletionTokens != 4 {
		t.Errorf("%+v", r)
	}
	if r.Header.Get("Authorization") != "" || r.Header.Get("Accept-Encoding") == "" {
		t.Errorf("headers %v", r.Header)
	}
}

// recorder keeps a test's failures to itself.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// What a broken connection leaves is what the client had read until then.
func TestCuts(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.CutConnection(), llmtest.CutMidway("1234567890"), llmtest.CutMidway("1234567890"), llmtest.EndMidway("1234567890"))
	if _, _, err := post(t, s, "", hello); !errors.Is(err, io.EOF) {
		t.Errorf("before the headers: %v", err)
	}
	if _, body, err := post(t, s, "", hello); !errors.Is(err, io.ErrUnexpectedEOF) || body == "" || json.Valid([]byte(body)) {
		t.Errorf("midway: %q, %v", body, err)
	}
	if _, body, err := post(t, s, "", streamed); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(body, "12345") || strings.Contains(body, "6") {
		t.Errorf("midway in a stream: %q, %v", body, err)
	}
	if _, body, err := post(t, s, "", streamed); err != nil || !strings.Contains(body, "12345") || strings.Contains(body, "DONE") {
		t.Errorf("ended midway: %q, %v", body, err)
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "a", Name: "f", Arguments: "{}"}
	m := &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
		if len(req.Messages) > 1 {
			return llmtest.ResponseCalling(call), errors.New("after all")
		}
		return llmtest.Response("one two"), nil
	}}
	message := json.RawMessage(`{"role":"user","content":"x"}`)
	var deltas []string
	each := func(d llm.Delta) error {
		deltas = append(deltas, d.Content+string(d.ToolCalls))
		return nil
	}
	res, err := m.Stream(t.Context(), llm.Request{Messages: []json.RawMessage{message}}, each)
	if err != nil || res.Text != "one two" || res.Model != "fake" || string(res.Message) != `{"content":"one two","role":"assistant"}` {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := m.Stream(t.Context(), llm.Request{Messages: []json.RawMessage{message, message}}, each); err == nil {
		t.Error("no error")
	}
	if want := []string{"one ", "two", `[{"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"}]`}; !slices.Equal(deltas, want) {
		t.Errorf("%q", deltas)
	}
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Complete(ctx, llm.Request{}); !errors.Is(err, llm.ErrCanceled) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := m.Complete(ctx, llm.Request{}); !errors.Is(err, llm.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	enough := errors.New("enough")
	if _, err := new(llmtest.Model).Stream(t.Context(), llm.Request{}, func(llm.Delta) error { return enough }); err != enough {
		t.Error(err)
	}
}

func TestBeyondTheScript(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	s := llmtest.NewServer(r)
	if res, _, err := post(t, s, "", hello); err != nil || res.StatusCode != 500 {
		t.Error(res, err)
	}
	if want := []string{"llmtest: request 1 has no behaviour in the server's script"}; !slices.Equal(r.failures, want) {
		t.Errorf("%q", r.failures)
	}
}

// A hanging behaviour ends when the client goes, and with the test at last.
func TestHangs(t *testing.T) {
	t.Parallel()
	hangs := []llmtest.Behaviour{
		llmtest.Hang(), llmtest.HangMidway("abcdef"), llmtest.HangAtEnd("abcdef"), llmtest.Endless(), llmtest.EndlessSilence(),
		llmtest.Slow(time.Hour, llmtest.Answer("x")), llmtest.After(nil, llmtest.Answer("x")),
	}
	s := llmtest.NewServer(t, slices.Concat(hangs, hangs)...)
	for i := range 2 * len(hangs) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		go func() {
			defer cancel()
			for len(s.Requests()) <= i && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/chat/completions", strings.NewReader([]string{hello, streamed}[i/len(hangs)]))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Client().Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	for until := time.Now().Add(30 * time.Second); s.Abandoned() != 2*len(hangs); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d of %d requests are known to be abandoned", s.Abandoned(), 2*len(hangs))
		}
	}
	// One that nobody gives up is let go of by the end of the test.
	s.Script(llmtest.HangMidway("abcdef"))
	res, err := s.Client().Post(s.URL()+"/chat/completions", "application/json", strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Errorf("%q, %v", line, err)
	}
}
