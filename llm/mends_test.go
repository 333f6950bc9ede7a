package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// Calls that name no id, share one, or hand over an object are mended, and the pieces of
// a stream say the same as the message.
func TestMendedCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pieces []string
		want   string // name and arguments of the calls
	}{
		"no id":              {[]string{`{"index":0,"function":{"name":"f","arguments":"{"}}`, `{"index":0,"function":{"arguments":"}"}}`}, `f {} `},
		"an object":          {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}`}, `f {"x": 1} `},
		"null":               {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`, `{"index":0,"function":{"arguments":"{}"}}`}, `f {} `},
		"one id":             {[]string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}`}, `f {} g {} `},
		"neither id nor no.": {[]string{`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"f","arguments":"{}"}}`}, `f {} f {} `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			type call struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			}
			var deltas []string
			for _, piece := range test.pieces {
				deltas = append(deltas, `{"tool_calls":[`+piece+`]}`)
			}
			s := llmtest.NewServer(t, events(finish+done, deltas...))
			streamed := map[int]call{}
			res, err := client(t, s).Stream(deadline(t, timeout), request(), func(d llm.Delta) error {
				var pieces []call
				if err := json.Unmarshal(d.ToolCalls, &pieces); err != nil {
					return err
				}
				for _, p := range pieces {
					c := streamed[p.Index]
					c.ID, c.Function.Name, c.Function.Arguments = c.ID+p.ID, c.Function.Name+p.Function.Name, c.Function.Arguments+p.Function.Arguments
					streamed[p.Index] = c
				}
				return nil
			})
			check.NoError(t, err)
			var m struct {
				Calls []call `json:"tool_calls"`
			}
			check.NoError(t, json.Unmarshal(res.Message, &m))
			got, ids := "", map[string]bool{}
			for i, c := range m.Calls {
				got += fmt.Sprintf("%s %s ", c.Function.Name, c.Function.Arguments)
				if s := streamed[i]; c.ID == "" || ids[c.ID] || s.ID != c.ID || s.Function != c.Function {
					t.Errorf("the stream's call is %+v, and the message's %+v", s, c)
				}
				ids[c.ID] = true
			}
			if got != test.want {
				t.Errorf("calls %q, want %q", got, test.want)
			}
		})
	}
}

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
