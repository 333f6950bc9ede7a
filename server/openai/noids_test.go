package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestHistoryWithoutIDs holds that the steps of a turn with calls, which the AI SDK
// sends whole and without an id, go on where they left off. Chats that begin alike
// stay apart, and a history that is another one's in part begins its own.
func TestHistoryWithoutIDs(t *testing.T) {
	t.Parallel()
	call := func(id string) llmtest.Behaviour {
		return llmtest.CallTools(llmtest.ToolCall{ID: id, Name: "weather", Arguments: "{}"})
	}
	a := setup{script: []llmtest.Behaviour{call("c1"), llmtest.Answer("7 degrees."), call("c2"), llmtest.Answer("8 degrees."), llmtest.Answer("9 degrees."), llmtest.Answer("10 degrees.")}}.serve(t)
	const tools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"},"strict":null}]`
	const question = `{"role":"user","content":[{"type":"input_text","text":"How warm?"}]}`
	step := func(id string) string {
		return question + `,{"type":"function_call","call_id":"` + id + `","name":"weather","arguments":"{}"},{"type":"function_call_output","call_id":"` + id + `","output":"warm"}`
	}
	ask := func(input string) response { return a.create(`{"model":"wood",` + tools + `,"input":[` + input + `]}`) }

	first := ask(question)
	second := ask(step("c1"))
	if branch, nodes := a.said(second); nodes != 4 || len(branch) != 4 || nodeOf(t, first.ID).Conversation != nodeOf(t, second.ID).Conversation {
		t.Errorf("%d messages, %q", nodes, branch)
	}
	other := ask(question)
	if nodeOf(t, other.ID).Conversation == nodeOf(t, first.ID).Conversation {
		t.Error("two chats that begin alike share a conversation")
	}
	again := ask(step("c1")) // asked for again: a sibling of the answer
	if _, nodes := a.said(again); nodes != 5 || again.ID == second.ID {
		t.Errorf("%d messages", nodes)
	}
	// Of the second chat the answer isn't in the conversation that is looked at.
	if r := ask(step("c2")); nodeOf(t, r.ID).Conversation == nodeOf(t, first.ID).Conversation {
		t.Error("a history that parts at the opening is taken for another one's")
	}
	// Another tenant's history meets nothing of it.
	body, _ := a.ask(200, "other", "POST", "/responses", `{"model":"wood",`+tools+`,"input":[`+step("c1")+`]}`)
	var r response
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	if nodeOf(t, r.ID).Conversation == nodeOf(t, first.ID).Conversation {
		t.Error("another tenant's conversation was found")
	}
}
