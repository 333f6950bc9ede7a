package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

func ptr[T any](v T) *T { return &v }

// Options are sent under the names of chat completions, and nothing of those that are unset.
func TestOptions(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Answer("Hazel."), llmtest.Answer("Hazel."))
	m := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "gpt-4o", HTTPClient: s.Client()}))(t)
	format := `{"type":"json_schema",  "json_schema":{"name":"a<b","schema":{"x":1.0}}}`
	for _, o := range []llm.Options{{}, {
		TopP: ptr(0.5), PresencePenalty: ptr(0.0), FrequencyPenalty: ptr(-1.5), Seed: ptr(0), Stop: []string{"<END>", "\n"}, ParallelToolCalls: ptr(false),
		ReasoningEffort: "low", ServiceTier: "flex", User: "u&1", ResponseFormat: json.RawMessage(format),
	}} {
		check.Must(m.Complete(t.Context(), llm.Request{Messages: []json.RawMessage{user("x")}, Options: o}))(t)
	}
	const all = `,"top_p":0.5,"presence_penalty":0,"frequency_penalty":-1.5,"seed":0,"stop":["<END>","\n"],"parallel_tool_calls":false,` +
		`"reasoning_effort":"low","service_tier":"flex","user":"u&1","response_format":`
	bare, full := string(s.Requests()[0].Body), string(s.Requests()[1].Body)
	check.Equal(t, "sent", full, strings.Replace(bare, `,"messages"`, all+format+`,"messages"`, 1))
}

func TestOptionsThatCantBeSent(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]llm.Options{
		"top_p":                       {TopP: ptr(-0.1)},
		"presence_penalty":            {PresencePenalty: ptr(math.NaN())},
		"frequency_penalty":           {FrequencyPenalty: ptr(math.Inf(1))},
		"stop":                        {Stop: []string{"a", "b", "c", "d", "e"}},
		"reasoning_effort":            {ReasoningEffort: "Very"},
		"service_tier":                {ServiceTier: strings.Repeat("x", 41)},
		"response_format":             {ResponseFormat: json.RawMessage(`{"type":`)},
		"response_format.type":        {ResponseFormat: json.RawMessage(`{}`)},
		"response_format.json_schema": {ResponseFormat: json.RawMessage(`{"type":"json_schema","json_schema":null}`)},
	} {
		got, why := o.Check()
		check.That(t, got == name && why != "", "%s: %q, %q", name, got, why)
	}
}

// The usage has what the provider's cache had, and what was reasoned.
func TestUsageInDetail(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Raw(200, "application/json", `{"choices":[{"message":{"content":"Hazel."},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":15}}}`))
	m, err := llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "gpt-4o", HTTPClient: s.Client()})
	check.NoError(t, err)
	r, err := m.Complete(t.Context(), llm.Request{Messages: []json.RawMessage{user("x")}})
	check.That(t, err == nil && r.PromptTokens == 100 && r.CompletionTokens == 20 && r.CachedTokens == 64 && r.ReasoningTokens == 15,
		"%+v, %v", r, err)
}

// A brokenStream gives a piece of its answer, and breaks off.
type brokenStream struct{ llm.Model }

func (brokenStream) Name() string { return "broken" }

func (brokenStream) Stream(_ context.Context, _ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	return llm.Response{}, errors.Join(each(llm.Delta{Content: "eight by"}), llm.ErrCanceled)
}

// TestBrokenStreamCosts holds that who leaves before a stream tells its tokens has them counted.
func TestBrokenStreamCosts(t *testing.T) {
	t.Parallel()
	var call llm.Call
	m := llm.Instrument(brokenStream{}, llm.Instruments{Observe: func(_ context.Context, c llm.Call) { call = c }})
	req := llm.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"` + strings.Repeat("a", 400) + `"}`)}}
	_, err := m.Stream(t.Context(), req, func(llm.Delta) error { return nil })
	check.That(t, errors.Is(err, llm.ErrCanceled) && call.PromptTokens >= 100 && call.PromptTokens <= 110 && call.CompletionTokens == 2,
		"%v: %+v", err, call)
}
