package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// TestReasoningItems holds that a reasoning item is streamed before the message, has
// the same id wherever it is read, and can be sent back. No model reads what is in it.
func TestReasoningItems(t *testing.T) {
	t.Parallel()
	const hm = "They ask for hazel, and for nothing else."
	a := newAPI(t, llmtest.Think(hm, "It is a wood."))
	a.upstream.Otherwise(llmtest.Answer("Every ten years."))
	streamed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"What is a coppice?","stream":true}`)
	r := responseIn(t, streamed)
	if len(r.Output) != 2 || r.Output[0].Type != "reasoning" || !strings.HasPrefix(r.Output[0].ID, "rs_") || r.Output[0].Content[0].Text != hm || r.Output[1].Content[0].Text != "It is a wood." {
		t.Fatalf("%s", streamed)
	}
	later, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID, "")
	check.Has(t, "what was streamed", final(streamed), later)
	check.Has(t, "read later", later, `"output_tokens_details":{"reasoning_tokens":10}`)
	if replayed, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID+"?stream=true", ""); strings.Count(replayed, r.Output[0].ID) < 4 {
		t.Errorf("replayed: %s", replayed)
	}
	// The branch goes on, by the response's id and with everything in full.
	_, raw := itemsIn(t, later)
	for _, rest := range []string{
		`"input":"How often?","previous_response_id":"` + r.ID + `"`,
		`"input":[{"role":"user","content":"What is a coppice?"},` + strings.Join(raw, ",") + `,{"role":"user","content":"Is it?"}]`,
	} {
		n := nodeOf(t, a.create(`{"model":"wood",`+rest+`}`).ID)
		check.Lacks(t, "the model reads", a.prompt(), "nothing else")
		var thoughts []string
		for m, err := range a.store.ForTenant("acme").Branch(t.Context(), n.Conversation, n.Node, 0) {
			check.NoError(t, err)
			if m.Reasoning != "" {
				thoughts = append(thoughts, string(m.Role)+" "+m.Reasoning)
			}
		}
		if len(thoughts) != 1 || thoughts[0] != string(tree.RoleAssistant)+" "+hm {
			t.Errorf("stored are %q", thoughts)
		}
	}
}

// TestReasoningGivenBack holds that a model which wants its reasoning back gets it from
// the items of a client of which nothing is stored, with its calls alone.
func TestReasoningGivenBack(t *testing.T) {
	t.Parallel()
	for _, wants := range []bool{true, false} {
		a := setup{replies: reply.Config{WantsReasoning: func(string) bool { return wants }}, script: []llmtest.Behaviour{llmtest.Answer("ok")}}.serve(t)
		a.create(`{"model":"wood","store":false,"input":[{"role":"user","content":"Weather?"},{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},
			{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"Sun."}]}`)
		if got := a.prompt(); strings.Contains(got, `"reasoning_content":"Hm."`) != wants || strings.Count(got, "reasoning_content") > 1 {
			t.Errorf("wanted %t: the model was given %s", wants, got)
		}
	}
}
