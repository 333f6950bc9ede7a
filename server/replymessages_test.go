package server

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestResultsTogether sends the results of two calls in one request, with
// instructions. The same again gives the same answer and stores nothing.
func TestResultsTogether(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t,
		llmtest.CallTools(llmtest.ToolCall{ID: "x", Name: "look_up", Arguments: `{}`}, llmtest.ToolCall{ID: "y", Name: "look_up", Arguments: `{}`}),
		llmtest.Answer("A tree."))
	a := newAPI(t, withModels(nil, model(t, server)))
	plant(t, a.store, "c")
	a.listen(t.Context(), ask(replyPathOf, `{"id":"{{calls}}","tools":[{"type":"function","function":{"name":"look_up"}}],"tool_choice":"required"}`)).toEnd()
	if body := string(server.Requests()[0].Body); !strings.Contains(body, `"tool_choice":"required"`) || !strings.Contains(body, `"tools":[{"type":"function"`) {
		t.Error(body)
	}
	path := conversationPathOf + "/branches/{{calls}}/replies"
	one := `{"role":"tool","tool_call_id":"x","content":"ash"}`
	p := a.refused(400, CodeOpenToolCalls, ask(path, `{"messages":[`+one+`]}`))
	if !strings.Contains(p.Detail, `"y"`) {
		t.Error(p.Detail)
	}
	r := ask(path, `{"stream":false,"instructions":"Speak as <wulfenite> & co.","messages":[`+one+`,{"role":"tool","tool_call_id":"y","content":"oak"}]}`)
	r.header = map[string]string{"Idempotency-Key": "results"}
	first := a.must(201, nil, r)
	before := a.state()
	if again := a.must(200, nil, r); string(again.body) != string(first.body) || a.state() != before {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	prompt := string(server.Requests()[1].Body)
	if !strings.Contains(prompt, `"messages":[{"content":"Speak as \u003cwulfenite\u003e \u0026 co.","role":"system"},{`) {
		t.Error(prompt)
	}
	if ash, oak := strings.Index(prompt, `"content":"ash"`), strings.Index(prompt, `"content":"oak"`); ash < 0 || oak < ash {
		t.Error(prompt)
	}
	if stored := string(a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/active/transcript")}).body); strings.Contains(stored, "wulfenite") || !strings.Contains(stored, `"content":"oak"`) {
		t.Error(stored)
	}
	r.body = fill(`{"messages":[` + one + `,{"role":"tool","tool_call_id":"y","content":"elm"}]}`)
	if p := a.refused(409, CodeIDConflict, r); p.Field == nil || *p.Field != idempotencyKey {
		t.Errorf("%+v", p)
	}
}
