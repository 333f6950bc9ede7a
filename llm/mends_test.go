package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
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
		e := wantError(t, err, llm.ErrInvalid)
		check.That(t, e.Reason == want && strings.HasSuffix(e.Error(), want), "%.60s: %s, want %s", body, e, want)
	}
}

// A request has its model's members beside its own, and goes again without an unknown hint.
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
		check.Has(t, "the request", body, `"min_p":0.2,`, `"top_k":7`)
		check.Equal(t, "that it has the hint", strings.Contains(body, "prompt_cache_key"), i == 0)
	}
}

// A chat template refuses two messages of one role in a row. They are joined from then on.
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
		check.Must(c.Complete(t.Context(), req))(t)
		requests := s.Requests()
		var sent []string
		for _, m := range requests[len(requests)-1].Messages {
			sent = append(sent, string(m))
		}
		got := strings.Join(sent, "\n")
		check.That(t, len(requests) == i+2 && got == want, "after %d requests the model was sent\n%s\nwant\n%s", len(requests), got, want)
	}
	if _, err := c.Complete(t.Context(), req); err == nil || len(s.Requests()) != 4 {
		t.Errorf("refused all the same: %v after %d requests", err, len(s.Requests()))
	}
}

// TestNoSystemMessage has a chat template refuse the system message, as Gemma's
// does. The user's first message then begins with it, from the next try on.
func TestNoSystemMessage(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.FailWith(llmtest.Failure{Status: http.StatusBadRequest, Message: "System role not supported"}), llmtest.Answer("one"))
	req := llm.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"system","content":"Be brief."}`), json.RawMessage(`{"role":"user","content":"Hello."}`)}}
	check.Must(client(t, s).Complete(t.Context(), req))(t)
	sent := s.Requests()[1].Messages
	check.That(t, len(sent) == 1 && string(sent[0]) == `{"role":"user","content":"Be brief.\n\nHello."}`, "the model was sent %s", sent)
}

// TestKnownToAlternate asks a model that is configured so. It gets turns at once.
func TestKnownToAlternate(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.TakesTurns(llmtest.Answer("one")))
	families := check.Must(llm.KnownFamilies().With(llm.Family{Prefix: "strict", Window: 1000, AlternatesRoles: true}))(t)
	c := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "strict", HTTPClient: s.Client(), Families: families}))(t)
	hello := json.RawMessage(`{"role":"user","content":"Hello."}`)
	check.Must(c.Complete(t.Context(), llm.Request{Messages: []json.RawMessage{hello, hello}}))(t)
	check.Equal(t, "requests", len(s.Requests()), 1)
}

// TestByTurns makes histories of any order of roles. Joined, a strict server takes
// them; those that it takes unjoined are known, and keep their bytes.
func TestByTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var messages []json.RawMessage
		var roles chat.Alternation
		open := false
		add := func(kind string) {
			text := fmt.Sprint("m", len(messages))
			body := fmt.Sprintf(`{"role":%q,"content":%q}`, kind, text)
			switch kind {
			case "call":
				body = fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, text)
			case "tool":
				body = fmt.Sprintf(`{"role":"tool","tool_call_id":"c","content":%q}`, text)
			}
			messages = append(messages, json.RawMessage(body))
			m := chat.Read(messages[len(messages)-1])
			roles.Add(m.Role, len(m.Calls) > 0)
			open = kind == "call"
		}
		for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"system", "developer", "user", "assistant", "call"}), 0, 12).Draw(t, "roles") {
			if open { // a context has no open call before its end
				add("tool")
			}
			add(kind)
		}
		if open {
			add("tool")
		} else {
			add("user")
		}
		refused := llmtest.CheckTurns(messages)
		check.Equal(t, "that the roles alternate", roles.Alternate(), refused == nil)
		for _, noSystem := range []bool{false, true} {
			joined, at := chat.ByTurns(messages, noSystem)
			check.NoError(t, llmtest.CheckTurns(joined))
			for i, m := range messages {
				check.Need(t, strings.Contains(string(joined[at[i]]), chat.Read(m).Text()), "message %d is not in %s", i, joined[at[i]])
				check.Need(t, !roles.Alternate() || noSystem || string(joined[i]) == string(m), "%s became %s", m, joined)
			}
		}
	})
}

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
				check.Fails(c.Complete(deadline(t, timeout), customRequest()))(t, name, want)
			}
			for i, req := range s.Requests() {
				body := string(req.Body)
				check.Equal(t, fmt.Sprintf("that request %d has the custom tool", i), strings.Contains(body, `"type":"custom"`), test.custom[i])
				for _, part := range functions {
					check.That(t, strings.Contains(body, part) != test.custom[i], "request %d is %s\nwant     %s", i, body, part)
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
