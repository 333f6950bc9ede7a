package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-chat/coppice/llm"
)

// A Model is an llm.Model whose answers a function makes. The zero value
// answers "ok" to everything.
type Model struct {
	ModelName string // the result of Name; "" is "fake"

	// Answer makes the answer; nil answers "ok". Several goroutines may call it
	// at once. A function that waits should watch ctx, unless the test needs
	// one that doesn't.
	Answer func(ctx context.Context, req llm.Request) (llm.Response, error)

	mu       sync.Mutex
	requests []llm.Request
}

var _ llm.Model = (*Model)(nil)

// Name implements llm.Model.
func (m *Model) Name() string {
	if m.ModelName == "" {
		return "fake"
	}
	return m.ModelName
}

// Requests returns the requests that the model got, oldest first.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Complete implements llm.Model.
func (m *Model) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return llm.Response{}, &llm.Error{Kind: llm.ErrTimeout, Model: m.Name(), Err: err}
	case err != nil:
		return llm.Response{}, &llm.Error{Kind: llm.ErrCanceled, Model: m.Name(), Err: err}
	}
	answer := m.Answer
	if answer == nil {
		answer = func(context.Context, llm.Request) (llm.Response, error) { return Response("ok"), nil }
	}
	res, err := answer(ctx, req)
	if res.Model == "" {
		res.Model = m.Name()
	}
	return res, err
}

// Stream implements llm.Model. It sends the answer's reasoning, its text word
// by word, its refusal, its tool calls, and last the error if there is one.
func (m *Model) Stream(ctx context.Context, req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	res, err := m.Complete(ctx, req)
	deltas := []llm.Delta{{Reasoning: res.Reasoning}}
	for word := range strings.SplitAfterSeq(res.Text, " ") {
		deltas = append(deltas, llm.Delta{Content: word})
	}
	var message struct {
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	_ = json.Unmarshal(res.Message, &message) // one without calls gives none
	deltas = append(deltas, llm.Delta{Refusal: res.Refusal}, llm.Delta{ToolCalls: message.ToolCalls})
	for _, d := range deltas {
		if d.Reasoning == "" && d.Content == "" && d.Refusal == "" && d.ToolCalls == nil {
			continue
		}
		if err := each(d); err != nil {
			return res, err
		}
	}
	return res, err
}
