package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"

	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// A completion is what a test reads of one.
type completion struct {
	ID, Object, Model string
	Choices           []struct {
		Message json.RawMessage
		Finish  string `json:"finish_reason"`
	}
	Usage struct {
		Total int `json:"total_tokens"`
	}
	Metadata map[string]string

	conversation, head string // of the header
}

// complete asks for a chat completion; headers are names and values by turns.
func (a *api) complete(tenant, body string, headers ...string) (c completion) {
	a.t.Helper()
	status, got, header := a.send(tenant, "POST", "/chat/completions", body, headers...)
	if status != http.StatusOK {
		a.t.Fatalf("%s: %d %s", body, status, got)
	}
	if err := json.Unmarshal([]byte(got), &c); err != nil || len(c.Choices) != 1 {
		a.t.Fatalf("%s: %v", got, err)
	}
	c.conversation, c.head = header.Get("X-Coppice-Conversation-Id"), header.Get("X-Coppice-Head-Id")
	return c
}

// chatBody is a request of these messages, with further members before them.
func chatBody(members string, messages ...string) string {
	return `{"model":"wood",` + members + `"messages":[` + strings.Join(messages, ",") + `]}`
}

const store = `"store":true,`

func said(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }

func TestCompletionsAreBranches(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."), llmtest.Answer("Every ten years."), llmtest.Answer("With a billhook."), llmtest.Answer("A kind of hedge."), llmtest.Answer("Indeed."))
	system, question, next := said("system", "Be brief."), said("user", "What is a coppice?"), said("user", "How often is it cut?")
	first := a.complete("acme", chatBody(store+`"metadata":{"a":"b"},`, system, question))
	if first.Object != "chat.completion" || first.Choices[0].Finish != "stop" || first.Usage.Total == 0 || first.Model != "wood" || first.Metadata["a"] != "b" || !strings.HasPrefix(first.ID, "chatcmpl-") {
		t.Errorf("%+v", first)
	}
	if n, err := wire.ParseCompletionID(first.ID); err != nil || n.Conversation.String() != first.conversation || n.Node.String() != first.head {
		t.Errorf("%s, %+v: %v", first.ID, first, err)
	}
	// The client sends the answer back as it came, or in another writing, and is
	// recognized.
	second := a.complete("acme", chatBody(store, system, question, string(first.Choices[0].Message), next))
	if m := a.message(second.conversation, second.head); second.conversation != first.conversation || m.Depth != 4 {
		t.Errorf("%+v", m)
	}
	if got := a.prompt(); got != strings.Join([]string{system, question, string(first.Choices[0].Message), next}, " ") {
		t.Errorf("the model was given %s", got)
	}
	other := `{"role":"assistant","content":[{"type":"text","text":"It is a wood."}],"refusal":null}`
	edited := a.complete("acme", chatBody(store, `{"content":"Be brief.","role":"developer"}`, question, other, `{"role":"user","content":[{"type":"text","text":"What is it cut with?"}]}`))
	if got := a.prompt(); strings.Contains(got, "How often") || strings.Contains(got, "ten years") || !strings.Contains(got, other) {
		t.Errorf("the model was given %s", got)
	}
	answerID := func(head string) uuid.UUID { // of the answer before the last question
		return a.message(first.conversation, a.message(first.conversation, head).ParentID.String()).ParentID
	}
	if answerID(second.head).String() != first.head || answerID(edited.head).String() != first.head {
		t.Errorf("the edit is not beside what it edits: %s and %s, want %s", answerID(second.head), answerID(edited.head), first.head)
	}
	again := a.complete("acme", chatBody(store, system, question))
	if m := a.message(again.conversation, again.head); m.Siblings != (tree.Siblings{Index: 2, Count: 2}) || again.conversation != first.conversation {
		t.Errorf("the other answer is %+v", m)
	}
	if n := a.messages(first.conversation); n != 8 { // s q a1 a2 · 2 · 2
		t.Errorf("%d messages, want 8", n)
	}
	c, err := a.store.ForTenant("acme").Conversation(t.Context(), uuid.MustParse(first.conversation))
	if err != nil || c.HeadID.String() != again.head || c.Title != "What is a coppice?" {
		t.Errorf("the active head of %q is %s, %v; want the newest answer %s", c.Title, c.HeadID, err, again.head)
	}
	// What the native API appends below is known, too.
	check.Must(a.store.ForTenant("acme").Append(t.Context(), c.ID, uuid.MustParse(again.head), tree.NewMessage{Message: chat.Read([]byte(said("user", "Is it?")))}))(t)
	a.complete("acme", chatBody(store, system, question, said("assistant", "A kind of hedge."), said("user", "Is it?")))
	if n := a.messages(first.conversation); n != 10 {
		t.Errorf("%d messages, want 10", n)
	}
}
