package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// A server that is overloaded at first and cuts its second answer off.
func ExampleNewServer() {
	_ = func(t *testing.T) { // the test
		s := llmtest.NewServer(t, llmtest.Fail(429), llmtest.CutMidway("Forty-two, of course."))
		model := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "any", HTTPClient: s.Client()}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req := llm.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"What is it?"}`)}}
		if _, err := model.Complete(ctx, req); !errors.Is(err, llm.ErrRateLimited) {
			t.Error(err)
		}
		if _, err := model.Complete(ctx, req); !errors.Is(err, llm.ErrUnavailable) {
			t.Error(err)
		}
		if n := len(s.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	}
}

// A model that takes a moment, and minds its context.
func ExampleModel() {
	_ = llmtest.Model{ModelName: "slow", Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		select {
		case <-time.After(10 * time.Millisecond):
			return llmtest.Response("A summary of what was said."), nil
		case <-ctx.Done():
			return llm.Response{}, ctx.Err()
		}
	}}
}
