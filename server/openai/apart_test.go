package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
)

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
	n := nodeOf(t, first.ID)
	question := openai.NodeID{Conversation: n.Conversation, Node: a.message("acme", n.Conversation.String(), n.Node.String()).ParentID}
	asked := openai.ItemID{NodeID: question, Kind: openai.KindMessage, Ordinal: 1}.String()
	ref := func(id string) string { return fmt.Sprintf(`{"type":"item_reference","id":%q}`, id) }
	full := func(id string) string { return fmt.Sprintf(`{"role":"assistant","id":%q,"content":"Indeed."}`, id) }
	for name, input := range map[string][]string{
		"references":         {says("user", "hi"), ref(once), says("user", "between"), ref(once), says("user", "go")},
		"in full":            {says("user", "hi"), full(once), says("user", "between"), full(once), says("user", "go")},
		"one of each":        {says("user", "hi"), ref(once), says("user", "between"), full(once), says("user", "go")},
		"above another":      {says("user", "hi"), ref(once), says("user", "between"), ref(once), says("user", "on"), ref(next), says("user", "go")},
		"what a user said":   {ref(asked), ref(once), says("user", "between"), ref(asked), says("user", "go")},
		"around another one": {ref(once), ref(next), ref(once)},
	} {
		for path, members := range map[string]string{"/responses": "", "/responses ": `"store":false,`, "/responses/compact": "", "/responses/input_tokens": ""} {
			status, got, _ := a.send("acme", "POST", strings.TrimSpace(path), `{"model":"wood",`+members+`"input":[`+strings.Join(input, ",")+`]}`)
			if status != 400 || !strings.Contains(got, `"message":"Duplicate item found with id `) || !strings.Contains(got, `"param":"input"`) {
				t.Errorf("%s, %s: %d %s", name, path, status, got)
			}
		}
	}
	if c, m := a.everything(); c != conversations || m != messages {
		t.Errorf("%d conversations with %d messages, want %d with %d", c, m, conversations, messages)
	}
	// One after the other, they say nothing else.
	r := a.create(`{"model":"wood","input":[` + says("user", "hi") + `,` + ref(once) + `,` + ref(once) + `,` + full(once) + `,` + says("user", "go") + `]}`)
	if branch, _ := a.said(r); fmt.Sprint(branch) != "[hi Indeed. go Indeed.]" {
		t.Errorf("%q", branch)
	}
	// A foreign id may mean anything.
	r = a.create(`{"model":"wood","input":[{"role":"user","id":"msg_1","content":"one"},{"role":"user","id":"msg_2","content":"two"},{"role":"user","id":"msg_1","content":"three"}]}`)
	if branch, _ := a.said(r); fmt.Sprint(branch) != "[one two three Indeed.]" {
		t.Errorf("%q", branch)
	}
	// A compaction item stands for all that is before it.
	compacted, _ := a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","input":[{"role":"user","content":"`+strings.Repeat("hazel ", 300)+`"},`+says("assistant", "Indeed.")+`]}`)
	_, output, _ := strings.Cut(compacted, `"output":[`)
	output, _, _ = strings.Cut(output, `],"usage"`)
	if r := a.create(`{"model":"wood","input":[` + ref(once) + "," + says("user", "between") + "," + ref(once) + "," + output + "," + says("user", "go") + `]}`); r.Status != "completed" || strings.Contains(a.prompt(), "between") {
		t.Errorf("%+v after %s", r, a.prompt())
	}
	if got, _ := a.ask(400, "acme", "POST", "/conversations", `{"items":[`+ref(once)+","+says("user", "between")+","+ref(once)+`]}`); !strings.Contains(got, `"param":"items"`) {
		t.Errorf("%s", got)
	}
}

// TestEachCallWithItsOutput holds that calls of one answer, of which a client sends
// each with its output, are that answer, and that every output is stored.
func TestEachCallWithItsOutput(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]}`
	for _, form := range []string{
		`{"type":"function_call","id":%q,"call_id":%q,"name":"weather","arguments":"{}"}`,
		`{"type":"item_reference","id":%q}`,
	} {
		for _, store := range []string{"", `"store":false,`} {
			a := newAPI(t, llmtest.CallTools(
				llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{}`}, llmtest.ToolCall{ID: "call_2", Name: "weather", Arguments: `{}`}, llmtest.ToolCall{ID: "call_3", Name: "weather", Arguments: `{}`},
			), llmtest.Answer("Sunny."))
			a.upstream.Otherwise(llmtest.Answer("Yes."))
			one := a.create(`{"model":"wood","input":"Weather?"` + tools)
			history := says("user", "Weather?")
			for i, o := range one.Output {
				if history += "," + form; strings.Contains(form, "call_id") {
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
}
