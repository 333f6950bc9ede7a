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
	"github.com/coppice-chat/coppice/server/openai"
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
	check.JSON(a.t, got, &c)
	c.conversation, c.head = header.Get("X-Coppice-Conversation-Id"), header.Get("X-Coppice-Head-Id")
	return c
}

// chatBody is a request of these messages, with further members before them.
func chatBody(members string, messages ...string) string {
	return `{"model":"wood",` + members + `"messages":[` + strings.Join(messages, ",") + `]}`
}

const store = `"store":true,`

func said(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }

// TestCompletions holds what a completion says, that its history is known again in another
// writing, and what the native API sees of it. TestMixedClients holds the branches.
func TestCompletions(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."), llmtest.Answer("With a billhook."), llmtest.Answer("Indeed."))
	system, question := said("system", "Be brief."), said("user", "What is a coppice?")
	first := a.complete("acme", chatBody(store+`"metadata":{"a":"b"},`, system, question))
	if first.Object != "chat.completion" || first.Choices[0].Finish != "stop" || first.Usage.Total == 0 || first.Model != "wood" || first.Metadata["a"] != "b" || !strings.HasPrefix(first.ID, "chatcmpl-") {
		t.Errorf("%+v", first)
	}
	if n, err := wire.ParseCompletionID(first.ID); err != nil || n.Conversation.String() != first.conversation || n.Node.String() != first.head {
		t.Errorf("%s, %+v: %v", first.ID, first, err)
	}
	other := `{"role":"assistant","content":[{"type":"text","text":"It is a wood."}],"refusal":null}`
	second := a.complete("acme", chatBody(store, `{"content":"Be brief.","role":"developer"}`, question, other, `{"role":"user","content":[{"type":"text","text":"What is it cut with?"}]}`))
	if got := a.prompt(); second.conversation != first.conversation || a.before(second) != first.head || !strings.Contains(got, other) {
		t.Errorf("%+v goes on elsewhere, or the model was given %s", second, got)
	}
	c := a.stored(uuid.MustParse(first.conversation))
	check.Equal(t, "the title", c.Title, "What is a coppice?")
	check.Equal(t, "the active head", c.HeadID.String(), second.head)
	// What the native API appends below is known, too.
	check.Must(a.store.ForTenant("acme").Append(t.Context(), c.ID, c.HeadID, tree.NewMessage{Message: chat.Read([]byte(said("user", "Is it?")))}))(t)
	a.complete("acme", chatBody(store, system, question, other, said("user", "What is it cut with?"), said("assistant", "With a billhook."), said("user", "Is it?")))
	check.Equal(t, "messages", a.messages(first.conversation), 7)
}

// TestEmptyMessages holds that a message that says nothing goes to the model, where
// nothing is recorded.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Record: true})
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	for empty, recorded := range map[string]int{said("system", ""): 0, said("user", ""): 0, `{"role":"assistant","content":null}`: 0, `{"role":"assistant"}`: 0, `{"role":"user","content":[{"type":"text","text":""}]}`: 1} {
		messages := []string{empty, said("user", "Hi")}
		before := len(a.listed("acme"))
		got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody("", messages...))
		if n := len(a.listed("acme")) - before; a.prompt() != strings.Join(messages, " ") || n != recorded {
			t.Errorf("%s: %d conversations, %s", empty, n, got)
		}
	}
}

// TestHistoryThatEndsInAnAnswer holds that a history which ends in an answer is
// answered, stored or not: some clients send what came of a stream that broke.
func TestHistoryThatEndsInAnAnswer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer(" that is cut."))
	hi, broken := said("user", "What is a coppice?"), said("assistant", "A wood")
	for path, body := range map[string]string{"/responses": `"input":[` + hi + `,` + broken + `]`, "/chat/completions": `"messages":[` + hi + `,` + broken + `]`} {
		for _, store := range []string{"true", "false"} {
			_, header := a.ask(200, "acme", "POST", path, `{"model":"wood","store":`+store+`,`+body+`}`)
			if got := a.prompt(); !strings.HasSuffix(got, broken) || (header.Get("X-Coppice-Head-Id") != "") != (store == "true") {
				t.Errorf("%s, store %s: the model was given %s; %v", path, store, got, header)
			}
		}
	}
}
