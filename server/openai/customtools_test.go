package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestCustomTools holds that a model which knows no custom tools gets one as a function,
// and that the client, the tree and the model's next request have a custom call.
func TestCustomTools(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.CallTools(llmtest.ToolCall{ID: "call_A", Name: "apply_patch", Arguments: `{"input":"*** Begin \"hazel\""}`}), llmtest.Answer("Patched."))
	const tools = `"tools":[{"type":"custom","name":"apply_patch","description":"Edits files."}]`
	id, whole := a.stream(`{"model":"wood","stream":true,"input":"Patch it.",` + tools + `}`)
	streamed := whole()
	for _, want := range []string{`"type":"response.custom_tool_call_input.delta"`, `"type":"custom_tool_call"`, `"input":"*** Begin \"hazel\""`} {
		if !strings.Contains(streamed, want) {
			t.Errorf("the stream has no %s:\n%s", want, streamed)
		}
	}
	n := nodeOf(t, id)
	if stored := string(a.message(n.Conversation.String(), n.Node.String()).Body); !strings.Contains(stored, `"custom":{"input":"*** Begin \"hazel\"","name":"apply_patch"}`) {
		t.Errorf("stored is %s", stored)
	}
	next := a.get("POST", "/responses", `{"model":"wood","input":[{"type":"custom_tool_call_output","call_id":"call_A","output":"Done."}],"previous_response_id":"`+id+`",`+tools+`}`)
	items, _ := a.ask(200, "acme", "GET", "/responses/"+next["id"].(string)+"/input_items", "")
	for _, want := range []string{`"type":"custom_tool_call_output"`, `"type":"custom_tool_call"`} {
		if !strings.Contains(items, want) {
			t.Errorf("the items have no %s: %s", want, items)
		}
	}
	for i, want := range []string{`{"type":"function","function":{"name":"apply_patch"`, `"function":{"arguments":"{\"input\":\"*** Begin \\\"hazel\\\"\"}","name":"apply_patch"}`} {
		if sent := string(a.upstream.Requests()[i].Body); !strings.Contains(sent, want) {
			t.Errorf("request %d is %s, want %s", i, sent, want)
		}
	}
}
