package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm"
)

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
	if !errors.Is(err, llm.ErrCanceled) || call.PromptTokens < 100 || call.PromptTokens > 110 || call.CompletionTokens != 2 {
		t.Errorf("%v: %+v", err, call)
	}
}
