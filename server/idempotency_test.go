package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// creates are the requests that make something, with %s where an id may stand.
var creates = []struct {
	name, path, body, otherBody string
	rows                        int // that it adds
}{
	{"conversation", "/v1/conversations", `{%s"title":"A"}`, `{%s"title":"B"}`, 1},
	{"message", appendPath, `{%s"parent_id":"{{c.thanks}}","role":"user","content":"A"}`, `{%s"parent_id":"{{c.thanks}}","role":"user","content":"B"}`, 1},
	{"root", appendPath, `{%s"parent_id":null,"role":"user","content":"A"}`, `{%s"parent_id":null,"role":"user","content":"A","pinned":true}`, 1},
	{"result", appendPath, `{%s"parent_id":"{{c.call}}","role":"tool","tool_call_id":"call_1","content":"A"}`, `{%s"parent_id":"{{c.call}}","role":"tool","tool_call_id":"call_1","content":"B"}`, 1},
	{"chain", appendPath, `{"parent_id":"{{c.thanks}}","messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"B"}]}`,
		`{"parent_id":"{{c.thanks}}","messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"C"}]}`, 2},
	{"message under the active head", appendPath, `{%s"role":"user","content":"A"}`, `{%s"role":"user","content":"B"}`, 1},
	{"chain under the active head", appendPath, `{"messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"B"}]}`,
		`{"messages":[{%s"role":"user","content":"A"},{"role":"assistant","content":"C"}]}`, 2},
	{"graft", conversationPathOf + "/branches/{{c.thanks}}/grafts", `{%s"from_head_id":"{{c.third}}"}`, `{%s"from_head_id":"{{c.third}}","include":"messages"}`, 1},
	{"fork", conversationPathOf + "/messages/{{c.thanks}}/fork", `{%s"title":"A"}`, `{%s"title":"B"}`, 5},
}

func (a *testAPI) rows() (n int) {
	a.t.Helper()
	check.NoError(a.t, a.pool.QueryRow(a.t.Context(), "select (select count(*) from conversations) + (select count(*) from nodes where kind = 'message')").Scan(&n))
	return n
}

// Each thing is made twice. One key names different things in different places.
func TestCreatesAreIdempotent(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range creates {
		for _, how := range []string{"id", "Idempotency-Key", "both"} {
			chain := strings.HasPrefix(c.name, "chain")
			if chain && how == "id" {
				continue // a chain needs an id for each message; see TestRoutes
			}
			t.Run(c.name+" by "+how, func(t *testing.T) {
				a := a.with(t)
				plant(t, a.store, t.Name())
				fill := func(s string) string { return fill(strings.ReplaceAll(s, "{{c", "{{"+t.Name())) }
				id, header := "", map[string]string{}
				if how != "Idempotency-Key" {
					id = fmt.Sprintf(`"id":"%s",`, named(t.Name()+" given"))
				}
				if how != "id" {
					header["Idempotency-Key"] = "a key: " + how
				}
				r := request{method: "POST", path: fill(c.path), body: fill(fmt.Sprintf(c.body, id)), header: header}
				before := a.rows()
				first := a.must(201, nil, r)
				check.Equal(t, "rows added", a.rows()-before, c.rows)
				state := a.state()
				again := a.must(200, nil, r)
				check.Equal(t, "the same again", string(again.body), string(first.body))
				r.body = fill(fmt.Sprintf(c.otherBody, id))
				field := "id"
				if how == "Idempotency-Key" || chain { // whose second message has no id of its own
					field = "Idempotency-Key"
				}
				if p := a.refused(409, CodeIDConflict, r); deref(p.Field) != field || !strings.Contains(p.Detail, "Send") {
					t.Errorf("the conflict is of %q, want %q: %s", deref(p.Field), field, p.Detail)
				}
				check.Equal(t, "what is stored", a.state(), state)
				check.That(t, how == "Idempotency-Key" || strings.Contains(string(first.body), named(t.Name()+" given").String()),
					"the body's id didn't count: %s", first.body)
				if how == "Idempotency-Key" {
					r.header = map[string]string{"Idempotency-Key": "another: " + t.Name()}
					a.must(201, nil, r)
				}
			})
		}
	}
}

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
				a.tells(200, get(path+"/branches/{{last}}/context"), strings.ReplaceAll(want, "ID", test.id))
			})
		}
	}
}

// An answer is stored as an SDK's object gives it, or vLLM's JSON.
func TestAnswersOfLibraries(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const said = `{"content":"hi","refusal":null,"role":"assistant","annotations":null,"audio":null,"function_call":null,"tool_calls":[],"reasoning":null}`
	for _, body := range []string{said, `{"messages":[` + said + `]}`} {
		var c struct{ ID string }
		a.must(201, &c, request{method: "POST", path: "/v1/conversations", body: `{}`})
		a.must(201, nil, request{method: "POST", path: "/v1/conversations/" + c.ID + "/messages", body: body})
		a.tells(200, get("/v1/conversations/"+c.ID+"/branches/active/context"), `"messages":[{"role":"assistant","content":"hi","refusal":null,"audio":null,"annotations":null}]`)
	}
}
