package openai_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestResultsOfTurnsAtATime holds that a result which is sent to a conversation
// joins the call that it answers, whichever of several turns at a time has become
// the active branch, and that no turn sees another.
func TestResultsOfTurnsAtATime(t *testing.T) {
	t.Parallel()
	const turns = 3
	gate := make(chan struct{})
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		last := string(req.Messages[len(req.Messages)-1])
		for i := range turns {
			switch {
			case strings.Contains(last, fmt.Sprint("turn ", i)):
				return llmtest.After(gate, llmtest.CallTools(
					llmtest.ToolCall{ID: fmt.Sprint("call_", i), Name: "weather", Arguments: "{}"}, llmtest.ToolCall{ID: fmt.Sprint("more_", i), Name: "weather", Arguments: "{}"}))
			case strings.Contains(last, fmt.Sprint("result ", i)):
				return llmtest.Answer(fmt.Sprint("answer ", i))
			}
		}
		return llmtest.Answer("plain")
	}))
	id, native := a.conversation(`{"items":[` + says("user", "before") + `]}`)
	before, err := a.store.ForTenant("acme").Conversation(t.Context(), native)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(input string) string {
		return `{"model":"wood","conversation":"` + id + `","tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}],"input":` + input + `}`
	}
	results := func(i int) string {
		const one = `{"type":"function_call_output","call_id":"%s_%d","output":"result %[2]d"}`
		return "[" + fmt.Sprintf(one, "call", i) + "," + fmt.Sprintf(one, "more", i) + "]"
	}
	var wg sync.WaitGroup
	for i := range turns {
		wg.Go(func() { a.try(ask(fmt.Sprintf(`"turn %d"`, i))) })
	}
	a.eventually(func() bool { return len(a.upstream.Requests()) == turns })
	close(gate)
	wg.Wait()
	a.setHead(native, before.HeadID)
	a.try(ask(`"plain"`))

	// Not stored, a result reads the branch of its call all the same.
	for i := range turns {
		got, _ := a.ask(200, "acme", "POST", "/responses", strings.Replace(ask(results(i)), `{`, `{"store":false,`, 1))
		if prompt := a.prompt(); !strings.Contains(got, fmt.Sprint("answer ", i)) || !strings.Contains(prompt, fmt.Sprint("turn ", i)) || strings.Contains(prompt, "plain") {
			t.Errorf("%s to %s", got, prompt)
		}
	}
	asked := len(a.upstream.Requests())
	for i := range turns {
		wg.Go(func() { a.try(ask(results(i))) })
	}
	wg.Wait()
	for _, req := range a.upstream.Requests()[asked:] {
		prompt := joined(req.Messages)
		for i := range turns {
			if has := strings.Contains(prompt, fmt.Sprint("result ", i)); has != strings.Contains(prompt, fmt.Sprint("turn ", i)) {
				t.Errorf("the model was given %s", prompt)
			}
		}
	}
	branches, err := a.store.ForTenant("acme").Branches(t.Context(), native, tree.Paging{})
	if err != nil || len(branches.Data) != turns+1 || a.treeSize(native) != 1+turns*5+2 {
		t.Errorf("%d branches, %v; %d messages", len(branches.Data), err, a.treeSize(native))
	}
	// A call of the active branch that has its result gets another one beside it.
	active := a.items(id, "").says()
	for i := range turns {
		if strings.Contains(active, fmt.Sprint("call_", i)) {
			a.try(ask(results(i)))
		}
	}
	if n := a.treeSize(native); n != 1+turns*5+2+3 {
		t.Errorf("%d messages", n)
	}
	if got, _ := a.ask(400, "acme", "POST", "/responses", ask(results(7))); !strings.Contains(got, `"param":"input"`) {
		t.Errorf("%s", got)
	}
}
