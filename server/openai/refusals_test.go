package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
)

// before is the message that an answer's question follows.
func (a *api) before(c completion) string {
	a.t.Helper()
	question := a.message("acme", c.conversation, c.head).ParentID
	return a.message("acme", c.conversation, question.String()).ParentID.String()
}

// Two refusals of one question say different things, and a client that goes on from
// one goes on from that one, however it writes it.
func TestRefusalsAreBranches(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Managed: true}, llmtest.Refuse("Not about hazel."), llmtest.Refuse("Not about willow."))
	a.upstream.Otherwise(llmtest.Answer("Well then."))
	question, next := said("user", "How do I fell a tree?"), said("user", "And a shrub?")
	var refusals []completion
	for range 2 {
		refusals = append(refusals, a.complete("acme", chatBody(store, question)))
	}
	for i, text := range []string{"Not about hazel.", "Not about willow."} {
		if got := string(refusals[i].Choices[0].Message); !strings.Contains(got, text) {
			t.Fatalf("%s, want %s", got, text)
		}
		for _, written := range []string{
			string(refusals[i].Choices[0].Message),
			`{"refusal":"` + text + `","role":"assistant","content":""}`,
			`{"role":"assistant","content":[{"refusal":"` + text + `", "type":"refusal"}]}`,
		} {
			c := a.complete("acme", chatBody(store, question, written, next))
			if got := a.before(c); got != refusals[i].head {
				t.Errorf("%s goes on from %s, want %s", written, got, refusals[i].head)
			}
			if got := a.prompt(); !strings.Contains(got, text) {
				t.Errorf("after %s the model was given %s", written, got)
			}
		}
	}
	if n := a.messages("acme", refusals[0].conversation); n != 3+2+6 {
		t.Errorf("%d messages", n)
	}
	made := a.complete("acme", chatBody(store, question, `{"role":"assistant","content":null,"refusal":"Made up."}`, next))
	if got := a.prompt(); !strings.Contains(got, "Made up.") || strings.Contains(got, "hazel") || strings.Contains(got, "willow") {
		t.Errorf("the model was given %s, answer %s", got, made.head)
	}
}

// A refusal is the same in the stream, in the response and in the items, and two of
// them are two branches for a client that sends its history.
func TestRefusalsInResponses(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Refuse("Not about hazel."), llmtest.Refuse("Not about willow."))
	a.upstream.Otherwise(llmtest.Answer("Well then."))
	streamed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","stream":true,"input":"How do I fell a tree?"}`)
	id := finalID(t, streamed)
	for _, want := range []string{"event: response.refusal.delta\n", "event: response.refusal.done\n", `"part":{"type":"refusal","refusal":"Not about hazel."}`, "event: response.completed\n"} {
		if !strings.Contains(streamed, want) {
			t.Errorf("the stream lacks %s: %s", want, streamed)
		}
	}
	whole, _ := a.ask(200, "acme", "GET", "/responses/"+id, "")
	if !strings.Contains(final(streamed), whole) || !strings.Contains(whole, `"content":[{"type":"refusal","refusal":"Not about hazel."}]`) {
		t.Errorf("%s\n%s", whole, streamed)
	}
	n, err := openai.ParseResponseID(id)
	if err != nil {
		t.Fatal(err)
	}
	const user = `{"role":"user","content":"How do I fell a tree?"}`
	refused := func(text string) string {
		return `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"` + text + `"}]}`
	}
	same := a.create(`{"model":"wood","input":[` + user + `,` + refused("Not about hazel.") + `,{"role":"user","content":"Why?"}]}`)
	a.create(`{"model":"wood","input":[` + user + `,` + refused("Not about oak.") + `,{"role":"user","content":"Why?"}]}`)
	if got := a.prompt(); !strings.Contains(got, "oak") || strings.Contains(got, "hazel") {
		t.Errorf("the model was given %s", got)
	}
	m, err := openai.ParseResponseID(same.ID)
	if err != nil || m.Conversation != n.Conversation {
		t.Errorf("%s is in another conversation than %s: %v", same.ID, id, err)
	}
}
