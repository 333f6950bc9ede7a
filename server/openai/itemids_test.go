package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm/llmtest"

	"github.com/coppice-chat/coppice/server/openai/wire"
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
	return branch, a.treeSize(n.Conversation)
}

// TestEchoedIDs holds that a client which sends its whole history goes on where the
// deepest item is that it has an id of: no message is stored twice, none is lost,
// and another question at the same place is a branch.
func TestEchoedIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t, answersOf(12)...)
	first := a.create(`{"model":"wood","input":[{"role":"developer","content":"Mind."},{"role":"user","content":"One?"}]}`)
	answer, n := first.Output[0], nodeOf(t, first.ID)
	history := `{"role":"developer","content":"Mind."},{"role":"user","content":"One?"},`
	for name, known := range map[string]string{
		"as LangChain":      `{"type":"message","role":"assistant","id":"` + answer.ID + `","status":"completed","content":[{"type":"output_text","text":"Answer 0.","annotations":[]}]},`,
		"as the AI SDK":     `{"type":"item_reference","id":"` + answer.ID + `"},`,
		"with a foreign id": `{"type":"message","role":"assistant","id":"` + answer.ID + `","content":"Answer 0."},`,
	} {
		r := a.create(`{"model":"wood","input":[` + history + known + `{"type":"message","id":"msg_` + uuid.NewString() + `","role":"user","content":"` + name + `?"}]}`)
		branch, _ := a.said(r)
		if nodeOf(t, r.ID).Conversation != n.Conversation || len(branch) != 5 || branch[3] != name+"?" || strings.Count(a.prompt(), "One?") != 1 {
			t.Errorf("%s: %q after %s", name, branch, a.prompt())
		}
	}
	if nodes := a.treeSize(n.Conversation); nodes != 3+3*2 {
		t.Errorf("%d messages, want 9", nodes)
	}

	// A session that is kept as items of a conversation has ids of what a user said,
	// and an answer without: it is the one that stands there.
	asked := a.message(n.Conversation.String(), n.Node.String()).ParentID
	question := wire.ItemID{NodeID: wire.NodeID{Conversation: n.Conversation, Node: asked}, Kind: wire.KindMessage, Ordinal: 1}
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
	if nodeOf(t, responseIn(t, theirs).ID).Conversation == n.Conversation || a.treeSize(n.Conversation) != 15 {
		t.Error("another tenant goes on here")
	}
	// Items without ids hide none, however many they are.
	named, native := a.conversation(`{"items":[` + says("user", "Five?") + `]}`)
	long := a.create(`{"model":"wood","input":[{"id":"` + a.items(named, "").Data[0].ID + `"}` + strings.Repeat(","+says("user", "More."), 20) + `]}`)
	if nodeOf(t, long.ID).Conversation != native {
		t.Error("an id above 20 items names nothing")
	}
	// Without ids it is known by what it says, and another answer begins a branch.
	edited := a.create(`{"model":"wood","input":[` + history + `{"role":"assistant","content":"x"},{"role":"user","content":"Four?"}]}`)
	if branch, nodes := a.said(edited); nodeOf(t, edited.ID).Conversation != n.Conversation || nodes != 18 || branch[2] != "x" {
		t.Errorf("%d messages, and the branch is %q", nodes, branch)
	}
}

// TestItemTwice holds that a history which has an item twice, with something
// between, is refused as OpenAI refuses it: nothing that stands between is lost, and
// nothing is stored.
func TestItemTwice(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"hi"}`)
	second := a.create(`{"model":"wood","previous_response_id":"` + first.ID + `","input":"on"}`)
	conversations, messages := a.everything()
	once, next := first.Output[0].ID, second.Output[0].ID
	ref := func(id string) string { return fmt.Sprintf(`{"type":"item_reference","id":%q}`, id) }
	full := func(id string) string { return fmt.Sprintf(`{"role":"assistant","id":%q,"content":"Indeed."}`, id) }
	for name, input := range map[string][]string{
		"references":         {says("user", "hi"), ref(once), says("user", "between"), ref(once), says("user", "go")},
		"one of each":        {says("user", "hi"), ref(once), says("user", "between"), full(once), says("user", "go")},
		"above another":      {says("user", "hi"), ref(once), says("user", "between"), ref(once), says("user", "on"), ref(next), says("user", "go")},
		"around another one": {ref(once), ref(next), ref(once)},
	} {
		for path, members := range map[string]string{"/responses": "", "/responses ": `"store":false,`, "/responses/compact": "", "/responses/input_tokens": ""} {
			got, _ := a.ask(400, "acme", "POST", strings.TrimSpace(path), `{"model":"wood",`+members+`"input":[`+strings.Join(input, ",")+`]}`)
			if !strings.Contains(got, `"message":"Duplicate item found with id `) || !strings.Contains(got, `"param":"input"`) {
				t.Errorf("%s, %s: %s", name, path, got)
			}
		}
	}
	if got, _ := a.ask(400, "acme", "POST", "/conversations", `{"items":[`+ref(once)+","+says("user", "between")+","+ref(once)+`]}`); !strings.Contains(got, `"param":"items"`) {
		t.Errorf("%s", got)
	}
	if c, m := a.everything(); c != conversations || m != messages {
		t.Errorf("%d conversations with %d messages, want %d with %d", c, m, conversations, messages)
	}
	// One after the other, they say nothing else. A foreign id may mean anything.
	for want, input := range map[string]string{
		"[hi Indeed. go Indeed.]": says("user", "hi") + `,` + ref(once) + `,` + ref(once) + `,` + full(once) + `,` + says("user", "go"),
		"[one two three Indeed.]": `{"role":"user","id":"msg_1","content":"one"},{"role":"user","id":"msg_2","content":"two"},{"role":"user","id":"msg_1","content":"three"}`,
	} {
		if branch, _ := a.said(a.create(`{"model":"wood","input":[` + input + `]}`)); fmt.Sprint(branch) != want {
			t.Errorf("%q", branch)
		}
	}
	// A compaction item stands for all that is before it.
	compacted := a.get("POST", "/responses/compact", `{"model":"wood","input":[{"role":"user","content":"`+strings.Repeat("hazel ", 300)+`"},`+says("assistant", "Indeed.")+`]}`)
	output := strings.Trim(string(marshal(t, compacted["output"])), "[]")
	if r := a.create(`{"model":"wood","input":[` + ref(once) + "," + says("user", "between") + "," + ref(once) + "," + output + "," + says("user", "go") + `]}`); r.Status != "completed" || strings.Contains(a.prompt(), "between") {
		t.Errorf("%+v after %s", r, a.prompt())
	}
}

// TestEachCallWithItsOutput holds that calls of one answer, of which a client sends
// each with its output, are that answer, and that every output is stored.
func TestEachCallWithItsOutput(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]}`
	call := func(id string) llmtest.ToolCall { return llmtest.ToolCall{ID: id, Name: "weather", Arguments: `{}`} }
	calls := llmtest.CallTools(call("call_1"), call("call_2"), call("call_3"))
	a := newAPI(t)
	for form, store := range map[string]string{
		`{"type":"function_call","id":%q,"call_id":%q,"name":"weather","arguments":"{}"}`: "",
		`{"type":"item_reference","id":%q}`:                                               `"store":false,`,
	} {
		a.upstream.Script(calls)
		a.upstream.Otherwise(llmtest.Answer("Yes."))
		one := a.create(`{"model":"wood","input":"Weather? ` + uuid.NewString() + `"` + tools)
		question, _ := a.said(one)
		history := says("user", question[0])
		for i, o := range one.Output {
			if history += "," + form; store == "" {
				history = fmt.Sprintf(history, o.ID, o.CallID)
			} else {
				history = fmt.Sprintf(history, o.ID)
			}
			history += fmt.Sprintf(`,{"type":"function_call_output","call_id":%q,"output":"%d degrees"}`, o.CallID, i+20)
		}
		two := a.create(`{"model":"wood",` + store + `"input":[` + history + `]` + tools)
		got := a.prompt()
		for i := range 3 {
			if strings.Count(got, fmt.Sprintf("%d degrees", i+20)) != 1 || strings.Count(got, fmt.Sprintf(`"id":"call_%d"`, i+1)) != 1 {
				t.Errorf("of %s the model was given %s", history, got)
			}
		}
		if store != "" {
			continue
		}
		if branch, nodes := a.said(two); nodes != 6 || len(branch) != 6 {
			t.Errorf("%s is %d messages: %q", history, nodes, branch)
		}
		three := a.create(`{"model":"wood","input":[` + history + `,{"type":"item_reference","id":"` + two.Output[0].ID + `"},` + says("user", "Really?") + `]` + tools)
		if branch, nodes := a.said(three); nodes != 8 || len(branch) != 8 {
			t.Errorf("then it is %d messages: %q", nodes, branch)
		}
		again := a.create(`{"model":"wood","input":[` + history + `]` + tools) // the same once more: another answer
		if branch, nodes := a.said(again); nodes != 9 || len(branch) != 6 || again.ID == two.ID {
			t.Errorf("once more it is %d messages: %q", nodes, branch)
		}
	}
}

// An assistant's message that a client adds after one with an id is no part of that one.
func TestMessageBesideAnID(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."))
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	r := a.create(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},
		{"type":"message","id":"` + first.Output[0].ID + `","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is a wood.","annotations":[]}]},
		{"role":"assistant","content":"By the way, I was edited."},{"role":"user","content":"Go on."}]}`)
	if got := a.prompt(); strings.Count(got, "It is a wood.") != 1 || !strings.Contains(got, "By the way") {
		t.Errorf("the model was given %s", got)
	}
	n, _ := wire.ParseResponseID(first.ID)
	m, _ := wire.ParseResponseID(r.ID)
	if n.Conversation != m.Conversation {
		t.Error("it is another conversation")
	}
	// Two of them in a row, each with its id, are two messages of the tree.
	id, _ := a.conversation(`{"items":[` + says("user", "q") + `]}`)
	one, two := a.add(id, says("assistant", "a1")), a.add(id, says("assistant", "a2"))
	a.create(`{"model":"wood","input":[` + says("user", "q") + `,{"role":"assistant","id":"` + one.Data[0].ID + `","content":"a1"},{"role":"assistant","id":"` + two.Data[0].ID + `","content":"a2"},{"role":"user","content":"Go on."}]}`)
	if got := a.prompt(); strings.Count(got, "a1") != 1 || strings.Count(got, "a2") != 1 {
		t.Errorf("the model was given %s", got)
	}
	if items := a.items(id, ""); len(items.Data) != 5 && len(items.Data) != 3 {
		t.Errorf("%s", items.says())
	}
}
