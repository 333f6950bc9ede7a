package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// customRequest offers a custom tool, demands it, and has a call of it in its history.
func customRequest() llm.Request {
	return llm.Request{
		Messages: []json.RawMessage{
			json.RawMessage(`{"role":"user","content":"the word \"custom\""}`),
			json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"patch","input":"a\"b"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
			json.RawMessage(`{"role":"tool","tool_call_id":"a","content":"ok"}`), json.RawMessage(`{"role":"tool","tool_call_id":"b","content":"ok"}`),
		},
		Extra: map[string]json.RawMessage{
			"tools":       json.RawMessage(`[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"patch","description":"d","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /.+/"}}}}]`),
			"tool_choice": json.RawMessage(`{"type":"custom","custom":{"name":"patch"}}`),
		},
	}
}

// A model that knows custom tools gets them as they are. Any other gets functions, and
// so does one whose provider refuses them, at once and from then on.
func TestCustomToolsAsFunctions(t *testing.T) {
	t.Parallel()
	functions := []string{
		`"tool_choice":{"type":"function","function":{"name":"patch"}}`,
		`{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"patch","description":"d","parameters":{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text. It must match this lark grammar:\nstart: /.+/"}},"required":["input"],"additionalProperties":false}}}`,
		`{"id":"a","type":"function","function":{"name":"patch","arguments":"{\"input\":\"a\\\"b\"}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}`,
	}
	refuses := llmtest.FailWith(llmtest.Failure{Status: http.StatusBadRequest, Message: "Invalid value: 'custom'. Supported values are: 'function'."})
	ok := llmtest.Answer("ok")
	for name, test := range map[string]struct {
		model  string
		script []llmtest.Behaviour
		custom []bool // of each request
		fails  error  // of the first call
	}{
		"known":                      {"gpt-5.5", []llmtest.Behaviour{ok, ok}, []bool{true, true}, nil},
		"unknown":                    {"qwen3", []llmtest.Behaviour{ok, ok}, []bool{false, false}, nil},
		"refused":                    {"gpt-5.5", []llmtest.Behaviour{refuses, ok, ok}, []bool{true, false, false}, nil},
		"refused for something else": {"gpt-5.5", []llmtest.Behaviour{refuses, refuses, ok}, []bool{true, false, true}, llm.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.NewServer(t, test.script...)
			c := client(t, s, func(config *llm.OpenAIConfig) { config.Model = test.model })
			for _, want := range []error{test.fails, nil} {
				if _, err := c.Complete(deadline(t, timeout), customRequest()); !errors.Is(err, want) {
					t.Fatal(err)
				}
			}
			for i, req := range s.Requests() {
				body := string(req.Body)
				check.Equal(t, fmt.Sprintf("that request %d has the custom tool", i), strings.Contains(body, `"type":"custom"`), test.custom[i])
				for _, part := range functions {
					if strings.Contains(body, part) == test.custom[i] {
						t.Errorf("request %d is %s\nwant     %s", i, body, part)
					}
				}
			}
		})
	}
}

// The tools that a choice allows are functions, too, and no tools are none.
func TestAllowedCustomTools(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.Answer("ok"))
	c := client(t, s, func(config *llm.OpenAIConfig) { config.Model = "qwen3" })
	req := customRequest()
	req.Extra["tools"] = json.RawMessage(`[]`)
	req.Extra["tool_choice"] = json.RawMessage(`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"custom","custom":{"name":"patch"}}]}}`)
	check.Must(c.Complete(deadline(t, timeout), req))(t)
	body := string(s.Requests()[0].Body)
	check.Has(t, "the request", body, `{"mode":"auto","tools":[{"type":"function","function":{"name":"patch"}}]}`, `"tools":[],`)
}

// What a model calls that got functions is a call of the custom tool, in pieces as they
// come, and says the same in the pieces and in the message.
func TestCustomCallsOfFunctions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, input string }{
		"text":            {`{"input": "*** Begin\n\"a\" \\ \u00e9 🌳"}`, "*** Begin\n\"a\" \\ é 🌳"},
		"two escapes":     {`{"input":"a\ud83c\udf33b"}`, "a🌳b"},
		"half of one":     {`{"input":"a\ud83cb\ud83c"}`, "a\uFFFDb\uFFFD"},
		"a bare line end": {"{\"input\":\"a\nb\"}", "a\nb"},
		"more members":    {`{"input":"a","why":"b"}`, "a"},
		"input is second": {`{"why":"b","input":"a"}`, "a"},
		"no object":       {"*** Begin", "*** Begin"},
		"cut off":         {`{"input":"a\u00e`, `a\u00e`},
		"empty":           {`{"input":""}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := llmtest.ToolCall{ID: "a", Name: "patch", Arguments: test.arguments}
			s := llmtest.NewServer(t, llmtest.CallTools(call, llmtest.ToolCall{ID: "b", Name: "f", Arguments: "{}"}), llmtest.CallTools(call))
			c := client(t, s, func(config *llm.OpenAIConfig) { config.Model = "qwen3" })
			res, _ := streamCalls(t, c, customRequest())
			whole := check.Must(c.Complete(deadline(t, timeout), customRequest()))(t)
			input, _ := json.Marshal(test.input)
			for _, message := range []json.RawMessage{res.Message, whole.Message} {
				check.Has(t, "the message", string(message), `"tool_calls":[{"custom":{"input":`+string(input)+`,"name":"patch"},"id":"a","type":"custom"}`)
			}
		})
	}
}
