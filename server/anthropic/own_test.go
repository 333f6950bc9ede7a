package anthropic_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestOwnModel holds what a model of chat completions is asked, and how its answer
// comes back.
func TestOwnModel(t *testing.T) {
	t.Parallel()
	a := newAPI(t, newProvider(t))
	a.model.Script(llmtest.Think("Let me.", "Hi."))
	got, _ := a.ask(`{"model":"tree","max_tokens":100,"temperature":0.5,"stop_sequences":["END"],"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Hello"}]}]}`)
	sent := a.model.Requests()[0]
	if string(sent.Body) == "" || len(sent.Messages) != 2 || string(sent.Messages[0]) != `{"role":"system","content":"Be brief."}` || sent.MaxCompletionTokens != 100 || *sent.Temperature != 0.5 || !strings.Contains(string(sent.Body), `"stop":["END"]`) {
		t.Errorf("asked: %s", sent.Body)
	}
	check.Has(t, "answered", got, `"content":[{"type":"thinking","thinking":"Let me.","signature":""},{"type":"text","text":"Hi."}],"stop_reason":"end_turn"`)
}

// TestResultOfASession holds that a session may send the result of a call alone, and that
// the result of a tool that failed is stored as it came.
func TestResultOfASession(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.model.Script(llmtest.CallTools(llmtest.ToolCall{ID: "c", Name: "f", Arguments: "{}"}), llmtest.Answer("No."))
	const failed = `{"type":"tool_result", "tool_use_id":"c","is_error":true,"content":"Exit code 1"}`
	for _, content := range []string{`"Run it."`, `[` + failed + `]`} {
		a.ask(`{"model":"wood","max_tokens":9,"tools":[{"name":"f","input_schema":{}}],"messages":[{"role":"user","content":`+content+`}]}`, "X-Coppice-Session", "s")
	}
	sent := a.model.Requests()[1].Messages
	if len(sent) != 3 || string(sent[2]) != `{"role":"tool","content":"Error: Exit code 1","tool_call_id":"c"}` {
		t.Errorf("asked: %s", sent)
	}
	c := check.Must(a.store.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{}))(t).Data[0]
	stored := check.Must(a.store.Transcript(t.Context(), c.ID, c.HeadID, tree.Paging{}))(t).Data
	if len(stored) != 4 || !strings.Contains(string(stored[2].Metadata), `"content":[`+failed+`]`) {
		t.Errorf("stored: %+v", stored)
	}
}

// TestErrors holds that errors have Anthropic's form, wherever they come from.
func TestErrors(t *testing.T) {
	t.Parallel()
	a := newAPI(t, nil)
	a.model.Script(llmtest.Fail(429), llmtest.Fail(400), llmtest.FailMidway("Half"))
	const wood = `{"model":"wood","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`
	for _, test := range []struct {
		body   string
		header []string
		status int
		want   string
	}{
		{`{`, []string{}, 400, `"type":"invalid_request_error"`},
		{hello, []string{}, 404, `"type":"not_found_error"`},
		{wood, []string{"X-Api-Key", "cop_wrong"}, 401, `"type":"authentication_error"`},
		{wood, []string{}, 429, `"type":"rate_limit_error"`},
		{wood, []string{}, 400, `"type":"invalid_request_error"`},
		{wood, []string{}, 200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\""},
	} {
		status, got, _ := a.send("POST", "messages", test.body, test.header...)
		if status != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d %s", test.body, status, got)
		}
	}
	if status, got, _ := a.send("GET", "files", ""); status != 404 || !strings.HasPrefix(got, `{"type":"error",`) {
		t.Errorf("no route: %d %s", status, got)
	}
}

// TestCountAndModels holds who counts tokens and lists models.
func TestCountAndModels(t *testing.T) {
	t.Parallel()
	provider := newProvider(t)
	both, own := newAPI(t, provider), newAPI(t, nil)
	count := func(a *api, model, more string) string {
		_, got, _ := a.send("POST", "messages/count_tokens", `{"model":"`+model+`","messages":[{"role":"user","content":"Hello"}]`+more+`}`)
		return got
	}
	few, many := count(own, "wood", ""), count(own, "wood", `,"tools":[{"name":"f","description":"`+strings.Repeat("shrubs ", 100)+`"}]`)
	if !strings.HasPrefix(few, `{"input_tokens":`) || len(many) <= len(few) {
		t.Errorf("%s, %s", few, many)
	}
	check.Has(t, "what the upstream says", count(both, "claude-x", ""), "msg_1")
	if _, got, _ := own.send("GET", "models", ""); !strings.Contains(got, `"id":"tree"`) || !strings.Contains(got, `"first_id":"wood"`) {
		t.Errorf("%s", got)
	}
	for name, status := range map[string]int{"tree": 200, "oak": 404} {
		if got, _, _ := own.send("GET", "models/"+name, ""); got != status {
			t.Errorf("%s: %d", name, got)
		}
	}
}
