package llm_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestAlternatingRoles has a chat template refuse two messages of one role in a
// row. They are joined, at once and in each later request.
func TestAlternatingRoles(t *testing.T) {
	t.Parallel()
	refuses := llmtest.FailWith(llmtest.Failure{Status: http.StatusBadRequest, Type: "BadRequestError", Message: "Conversation roles must alternate user/assistant/user/assistant/..."})
	s := llmtest.NewServer(t, refuses, llmtest.Answer("one"), llmtest.Answer("two"), refuses)
	c := client(t, s)
	req := llm.Request{}
	for _, m := range []string{
		`{"role":"system","content":"Be brief."}`, `{"role":"system","content":"Be kind."}`,
		`{"role":"user","content":"A summary."}`, `{"role":"user","content":[{"type":"text","text":"Go on."},{"type":"image_url","image_url":{"url":"x"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"1"}`, `{"role":"tool","tool_call_id":"b","content":"2"}`,
		`{"role":"assistant","content":"Well."}`, `{"role":"assistant","content":"So."}`, `{"role":"user", "content":"Thanks."}`,
	} {
		req.Messages = append(req.Messages, json.RawMessage(m))
	}
	want := strings.Join([]string{
		`{"role":"system","content":"Be brief.\n\nBe kind."}`,
		`{"role":"user","content":[{"type":"text","text":"A summary."},{"type":"text","text":"Go on."},{"type":"image_url","image_url":{"url":"x"}}]}`,
		string(req.Messages[4]), string(req.Messages[5]), string(req.Messages[6]),
		`{"role":"assistant","content":"Well.\n\nSo."}`, string(req.Messages[9]),
	}, "\n")
	for i := range 2 {
		if _, err := c.Complete(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		requests := s.Requests()
		var sent []string
		for _, m := range requests[len(requests)-1].Messages {
			sent = append(sent, string(m))
		}
		if got := strings.Join(sent, "\n"); len(requests) != i+2 || got != want {
			t.Errorf("after %d requests the model was sent\n%s\nwant\n%s", len(requests), got, want)
		}
	}
	if _, err := c.Complete(t.Context(), req); err == nil || len(s.Requests()) != 4 {
		t.Errorf("refused all the same: %v after %d requests", err, len(s.Requests()))
	}
}
