package openai_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// A reasoning item is streamed before the message, has the same id wherever it is
// read, and can be sent back. No model reads what is in it.
func TestReasoningItems(t *testing.T) {
	t.Parallel()
	const hm = "They ask for hazel, and for nothing else."
	a := newAPI(t, llmtest.Think(hm, "It is a wood."), llmtest.Answer("Every ten years."), llmtest.Answer("Indeed."))
	streamed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"What is a coppice?","stream":true}`)
	var kinds []string
	var last struct{ Response json.RawMessage }
	for line := range strings.Lines(streamed) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok && !strings.HasSuffix(kind, "delta\n") {
			kinds = append(kinds, strings.TrimPrefix(strings.TrimSpace(kind), "response."))
		}
		if data, ok := strings.CutPrefix(line, "data: {"); ok {
			if err := json.Unmarshal([]byte("{"+data), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := strings.Join(kinds, " "), "created in_progress output_item.added content_part.added reasoning_text.done content_part.done output_item.done "+
		"output_item.added content_part.added output_text.done content_part.done output_item.done completed"; got != want {
		t.Errorf("the events are %s, want %s", got, want)
	}
	var r response
	if err := json.Unmarshal(last.Response, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Output) != 2 || r.Output[0].Type != "reasoning" || !strings.HasPrefix(r.Output[0].ID, "rs_") || r.Output[0].Content[0].Text != hm || r.Output[1].Content[0].Text != "It is a wood." {
		t.Fatalf("%s", last.Response)
	}
	if !strings.Contains(string(last.Response), `"output_tokens_details":{"reasoning_tokens":10}`) {
		t.Errorf("usage: %s", last.Response)
	}
	if later, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID, ""); later != string(last.Response) {
		t.Errorf("read later it is\n%s\nwas\n%s", later, last.Response)
	}
	if replayed, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID+"?stream=true", ""); strings.Count(replayed, r.Output[0].ID) < 4 {
		t.Errorf("replayed: %s", replayed)
	}

	// The branch goes on, by the response's id and with everything in full.
	a.create(`{"model":"wood","input":"How often?","previous_response_id":"` + r.ID + `"}`)
	if strings.Contains(a.prompt(), "nothing else") {
		t.Errorf("the model reads %s", a.prompt())
	}
	full := a.create(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},` + string(echo(t, last.Response)) + `,{"role":"user","content":"Is it?"}]}`)
	if strings.Contains(a.prompt(), "nothing else") {
		t.Errorf("the model reads %s", a.prompt())
	}
	n, err := openai.ParseResponseID(full.ID)
	if err != nil {
		t.Fatal(err)
	}
	var thoughts []string
	for m, err := range a.store.ForTenant("acme").Branch(t.Context(), n.Conversation, uuid.Nil, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Reasoning != "" {
			thoughts = append(thoughts, string(m.Role)+" "+m.Reasoning)
		}
	}
	if len(thoughts) != 1 || thoughts[0] != string(tree.RoleAssistant)+" "+hm {
		t.Errorf("stored of what came in full: %q", thoughts)
	}
}

// echo is a response's output as a client sends it back, without its brackets.
func echo(t *testing.T, response []byte) []byte {
	t.Helper()
	var r struct{ Output []json.RawMessage }
	if err := json.Unmarshal(response, &r); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for i, item := range r.Output {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return out
}

// What a model thought stands in the conversation as in the response, and stays when
// an item before it is deleted.
func TestReasoningInAConversation(t *testing.T) {
	t.Parallel()
	const hm = "They ask for hazel."
	a := newAPI(t, llmtest.Think(hm, "It is a wood."))
	id, _ := a.conversation(`{"items":[` + says("user", "q0") + `]}`)
	r := a.create(`{"model":"wood","conversation":"` + id + `","input":"What is a coppice?"}`)
	if len(r.Output) != 2 || r.Output[0].Type != "reasoning" {
		t.Fatalf("%+v", r)
	}
	has := func(where string) {
		t.Helper()
		list := a.items(id, "?order=asc")
		var kinds []string
		for _, item := range list.Data {
			kinds = append(kinds, item.Type)
		}
		at := len(list.Data) - 2
		if strings.Join(kinds[at:], " ") != "reasoning message" || list.Data[at].Content[0].Text != hm {
			t.Errorf("%s the items are %v", where, kinds)
			return
		}
		if got, _ := a.ask(200, "acme", "GET", "/conversations/"+id+"/items/"+list.Data[at].ID, ""); !strings.Contains(got, hm) {
			t.Errorf("%s: %s", where, got)
		}
	}
	has("after the answer")
	if ids := a.itemIDs(id, "asc", 1); len(ids) != 4 || ids[2] != r.Output[0].ID || ids[3] != r.Output[1].ID {
		t.Errorf("the items are %v, those of the response %+v", ids, r.Output)
	}
	a.ask(200, "acme", "DELETE", "/conversations/"+id+"/items/"+a.items(id, "?order=asc").Data[0].ID, "")
	has("after an earlier item was deleted")
	list := a.items(id, "?order=asc").Data
	a.ask(200, "acme", "DELETE", "/conversations/"+id+"/items/"+list[len(list)-2].ID, "")
	if got := a.items(id, "?order=asc").says(); got != "user:What is a coppice? assistant:It is a wood." {
		t.Errorf("without the reasoning there are %s", got)
	}
}

// A chat completion shows what a model thought, streamed or not, recorded or not.
func TestReasoningInCompletions(t *testing.T) {
	t.Parallel()
	const hm = "They ask for hazel."
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Think(hm, "It is a wood."))
	for _, members := range []string{``, store} {
		for _, stream := range []string{``, `"stream":true,`} {
			_, got, _ := a.send("acme", "POST", "/chat/completions", chatBody(members+stream, said("user", "What is a coppice?")))
			var thought strings.Builder
			for _, piece := range regexp.MustCompile(`"reasoning_content":"([^"]*)"`).FindAllStringSubmatch(got, -1) {
				thought.WriteString(piece[1])
			}
			if thought.String() != hm || answerIn(got) != "It is a wood." || stream != "" && strings.Index(got, "reasoning_content") > strings.Index(got, "It is") {
				t.Errorf("%q%q: %s", members, stream, got)
			}
		}
	}
}
