package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// said lists the texts of a branch, and tells how many messages the conversation has.
func (a *api) said(r response) (branch []string, count int) {
	a.t.Helper()
	n := nodeOf(a.t, r.ID)
	for m, err := range a.store.ForTenant("acme").Branch(a.t.Context(), n.Conversation, n.Node, 0) {
		if err != nil {
			a.t.Fatal(err)
		}
		var body struct{ Content string }
		_ = json.Unmarshal(m.Body, &body) // or parts, which no test here has
		branch = append(branch, body.Content)
	}
	nodes := 0
	for node, err := range a.store.ForTenant("acme").Tree(a.t.Context(), n.Conversation, 0) {
		if err != nil {
			a.t.Fatal(err)
		}
		if node.Kind == tree.KindMessage {
			nodes++
		}
	}
	return branch, nodes
}

// TestEchoedIDs holds that a client which sends its whole history goes on where the
// deepest item is that it has an id of: no message is stored twice, none is lost,
// and another question at the same place is a branch.
func TestEchoedIDs(t *testing.T) {
	t.Parallel()
	a := setup{script: answersOf(12)}.serve(t)
	first := a.create(`{"model":"wood","input":[{"role":"developer","content":"Mind."},{"role":"user","content":"One?"}]}`)
	answer := first.Output[0]
	history := `{"role":"developer","content":"Mind."},{"role":"user","content":"One?"},`
	for name, known := range map[string]string{
		"as LangChain":      `{"type":"message","role":"assistant","id":"` + answer.ID + `","status":"completed","content":[{"type":"output_text","text":"Answer 0.","annotations":[]}]},`,
		"as the AI SDK":     `{"type":"item_reference","id":"` + answer.ID + `"},`,
		"with a foreign id": `{"type":"message","role":"assistant","id":"` + answer.ID + `","content":"Answer 0."},`,
	} {
		r := a.create(`{"model":"wood","input":[` + history + known + `{"type":"message","id":"msg_` + uuid.NewString() + `","role":"user","content":"` + name + `?"}]}`)
		branch, _ := a.said(r)
		if nodeOf(t, r.ID).Conversation != nodeOf(t, first.ID).Conversation || len(branch) != 5 || branch[3] != name+"?" || strings.Count(a.prompt(), "One?") != 1 {
			t.Errorf("%s: %q after %s", name, branch, a.prompt())
		}
	}
	if _, nodes := a.said(first); nodes != 3+3*2 {
		t.Errorf("%d messages, want 9", nodes)
	}

	// A session that is kept as items of a conversation has ids of what a user said,
	// and an answer without: it is the one that stands there.
	n := nodeOf(t, first.ID)
	page, err := a.store.ForTenant("acme").Transcript(t.Context(), n.Conversation, n.Node, tree.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	question := openai.ItemID{NodeID: openai.NodeID{Conversation: n.Conversation, Node: page.Data[1].ID}, Kind: openai.KindMessage, Ordinal: 1}
	said, _ := json.Marshal(answer.Content[0].Text)
	session := `{"role":"user","id":"` + question.String() + `","content":"One?"},{"role":"assistant","content":` + string(said) + `},`
	r := a.create(`{"model":"wood","input":[` + session + `{"role":"user","content":"Two?"}]}`)
	if branch, nodes := a.said(r); nodes != 11 || len(branch) != 5 {
		t.Errorf("%d messages, and the branch is %q", nodes, branch)
	}
	// The same once more, as when an answer is asked for again: a sibling of the answer.
	again := a.create(`{"model":"wood","input":[` + session + `{"role":"user","content":"Two?"}]}`)
	if branch, nodes := a.said(again); nodes != 12 || len(branch) != 5 || again.ID == r.ID {
		t.Errorf("%d messages, and the branch is %q", nodes, branch)
	}
	// Another answer than the one that stands there is what the client says it is.
	other := a.create(`{"model":"wood","input":[{"role":"user","id":"` + question.String() + `","content":"One?"},{"role":"assistant","content":"Something else."},{"role":"user","content":"Three?"}]}`)
	if branch, nodes := a.said(other); nodes != 15 || branch[2] != "Something else." || strings.Contains(a.prompt(), "Answer 0.") {
		t.Errorf("%d messages, and the branch is %q", nodes, branch)
	}
	// An id of another tenant's is as none.
	theirs, _ := a.ask(200, "other", "POST", "/responses", `{"model":"wood","input":[`+session+`{"role":"user","content":"Mine?"}]}`)
	if id, _, _ := itemsIn(t, theirs); nodeOf(t, id).Conversation == n.Conversation {
		t.Error("another tenant goes on here")
	}
	if _, nodes := a.said(first); nodes != 15 {
		t.Errorf("%d messages after another tenant's request", nodes)
	}
	// Without ids a conversation begins.
	if r := a.create(`{"model":"wood","input":[` + history + `{"role":"assistant","content":"x"},{"role":"user","content":"Four?"}]}`); nodeOf(t, r.ID).Conversation == n.Conversation {
		t.Error("it goes on without an id")
	}
}

// TestEchoedCalls holds the same of calls and their outputs.
func TestEchoedCalls(t *testing.T) {
	t.Parallel()
	calls := llmtest.CallTools(llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{}`}, llmtest.ToolCall{ID: "call_2", Name: "weather", Arguments: `{"a":1}`})
	a := setup{script: []llmtest.Behaviour{calls, llmtest.Answer("Sunny."), llmtest.Answer("Yes."), llmtest.Answer("No.")}}.serve(t)
	const tools = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]}`
	one := a.create(`{"model":"wood","input":"Weather?"` + tools)
	history := `{"role":"user","content":"Weather?"}`
	for i, o := range one.Output {
		history += fmt.Sprintf(`,{"type":"function_call","id":%q,"call_id":%q,"name":"weather","arguments":%q}`, o.ID, o.CallID, []string{`{}`, `{"a":1}`}[i])
	}
	half := history + `,{"type":"function_call_output","call_id":"call_1","output":"22"}`
	a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":[`+half+`]`+tools)
	both := half + `,{"type":"function_call_output","call_id":"call_2","output":"23"}`
	two := a.create(`{"model":"wood","input":[` + both + `]` + tools)
	if branch, nodes := a.said(two); nodes != 5 || len(branch) != 5 {
		t.Errorf("%d messages: %q", nodes, branch)
	}
	three := a.create(`{"model":"wood","input":[` + both + `,{"role":"assistant","id":"` + two.Output[0].ID + `","content":"Sunny."},{"role":"user","content":"Really?"}]` + tools)
	if branch, nodes := a.said(three); nodes != 7 || len(branch) != 7 || strings.Count(a.prompt(), `"tool_call_id":"call_1"`) != 1 {
		t.Errorf("%d messages: %q", nodes, branch)
	}
	// An id of a call's output, behind which the other output is new.
	if _, nodes := a.said(three); nodes != 7 {
		t.Errorf("%d messages", nodes)
	}
}
