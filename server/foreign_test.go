package server

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestPartsOfOtherAPIs holds that calls and results in the form of other APIs are stored as
// chat completions have them, on each native way in, and once where they are sent again.
func TestPartsOfOtherAPIs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const want = `"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{\"y\":1}"}}]},{"role":"tool","content":"z","tool_call_id":"ID"},{"role":"user","content":"And?"}]`
	for api, test := range map[string]struct{ call, result, and, id string }{
		"Anthropic":          {`{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{"y":1}}`, `{"type":"tool_result","tool_use_id":"a","content":"z"}`, `{"type":"text","text":"And?"}`, "a"},
		"Bedrock":            {`{"text":"x"},{"toolUse":{"toolUseId":"a","name":"f","input":{"y":1}}}`, `{"toolResult":{"toolUseId":"a","content":[{"text":"z"}]}}`, `{"text":"And?"}`, "a"},
		"Gemini":             {`{"text":"x"},{"functionCall":{"id":"a","name":"f","args":{"y":1}}}`, `{"functionResponse":{"id":"a","name":"f","response":{"result":"z"}}}`, `{"text":"And?"}`, "a"},
		"Gemini without ids": {`{"text":"x"},{"functionCall":{"name":"f","args":{"y":1}}}`, `{"functionResponse":{"name":"f","response":{"result":"z"}}}`, `{"text":"And?"}`, "call_f2465eec7b6aa44f7a7c8162"},
	} {
		one := func(role, id, content string) string {
			return `{"id":"{{` + id + `}}","role":"` + role + `","content":[` + content + `]}`
		}
		list := `"messages":[` + one("assistant", "call", test.call) + `,` + one("user", "last", test.result+`,`+test.and) + `]}`
		for way, requests := range map[string][][2]string{
			"single": {{"/messages", one("assistant", "call", test.call)}, {"/messages", one("user", "result", test.result)}, {"/messages", `{"id":"{{last}}","role":"user","content":"And?"}`}},
			"list":   {{"/messages", `{` + list}},
			"reply":  {{"/branches/active/replies", `{"id":"{{answer}}",` + list}},
		} {
			if way == "single" && strings.HasSuffix(api, "ids") {
				continue // which a result needs that comes alone
			}
			t.Run(api+" in a "+way, func(t *testing.T) {
				a := a.with(t)
				a.must(201, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{` + t.Name() + `}}"}`)})
				path := fill("/v1/conversations/{{" + t.Name() + "}}")
				for _, r := range requests {
					for _, status := range []int{201, 200} {
						a.must(status, nil, request{method: "POST", path: path + r[0], body: fill(r[1])})
					}
				}
				got := a.must(200, nil, request{method: "GET", path: path + fill("/branches/{{last}}/context")})
				check.Has(t, "the context", string(got.body), strings.ReplaceAll(want, "ID", test.id))
			})
		}
	}
}

// TestAnswersOfLibraries holds that an answer is stored as an SDK's object gives it, or
// vLLM's JSON.
func TestAnswersOfLibraries(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const said = `{"content":"hi","refusal":null,"role":"assistant","annotations":null,"audio":null,"function_call":null,"tool_calls":[],"reasoning":null}`
	for _, body := range []string{said, `{"messages":[` + said + `]}`} {
		var c struct{ ID string }
		a.must(201, &c, request{method: "POST", path: "/v1/conversations", body: `{}`})
		a.must(201, nil, request{method: "POST", path: "/v1/conversations/" + c.ID + "/messages", body: body})
		got := a.must(200, nil, request{method: "GET", path: "/v1/conversations/" + c.ID + "/branches/active/context"})
		check.Has(t, body, string(got.body), `"messages":[{"role":"assistant","content":"hi","refusal":null,"audio":null,"annotations":null}]`)
	}
}
