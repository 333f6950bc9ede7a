package llm_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// The provider's own words reach the error, without keys and passages of the messages.
func TestReason(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"boo"}}`: "boo",
		`boo`:                         "boo",
		`{"detail":[{"msg":"boo"}]}`:  `[{"msg":"boo"}]`,
		`[{"error":{"message":"boo","code":400}}]`:                 "boo",
		`{"error":{"message":"a\n b","metadata":{"raw":"boo"}}}`:   "a b boo",
		`{"error":{"message":"bad key ` + key + `"}}`:              "bad key …",
		`{"error":{"message":"no sk-proj-abcdefghijkl"}}`:          "no …",
		`{"error":{"message":"can't read ` + secret + ` ok"}}`:     "can't read …",
		`{"error":{"message":"` + strings.Repeat("b", 400) + `"}}`: strings.Repeat("b", 300) + "…",
		`<html>`: "",
	} {
		s := llmtest.NewServer(t, llmtest.Raw(400, "", body))
		_, err := client(t, s).Complete(deadline(t, timeout), request())
		if e := wantError(t, err, llm.ErrInvalid); e.Reason != want || !strings.HasSuffix(e.Error(), want) {
			t.Errorf("%.60s: %s, want %s", body, e, want)
		}
	}
}

// A request has the members that the model is set up with, where it has none of its
// own, and goes again without a hint that the provider doesn't know.
func TestParamsAndHints(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.FailWith(llmtest.Failure{Status: http.StatusBadRequest, Message: "prompt_cache_key: Extra inputs are not permitted"}), llmtest.Answer("ok"), llmtest.Answer("ok"))
	c := client(t, s, func(config *llm.OpenAIConfig) {
		config.Params = map[string]json.RawMessage{"top_k": json.RawMessage("7"), "min_p": json.RawMessage("0.1")}
	})
	for range 2 {
		req := request()
		req.Extra = map[string]json.RawMessage{"min_p": json.RawMessage("0.2"), "prompt_cache_key": json.RawMessage(`"k"`)}
		check.Must(c.Complete(deadline(t, timeout), req))(t)
	}
	for i, req := range s.Requests() {
		body := string(req.Body)
		if !strings.Contains(body, `"min_p":0.2,`) || !strings.Contains(body, `"top_k":7`) || strings.Contains(body, "prompt_cache_key") != (i == 0) {
			t.Errorf("request %d is %s", i, body)
		}
	}
}
