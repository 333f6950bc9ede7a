package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// TestFailedFirstTurn holds that a conversation whose first answer fails shows its
// question, and that a retry answers that question, on any server and once.
func TestFailedFirstTurn(t *testing.T) {
	t.Parallel()
	for _, form := range []string{`"input":"hi"`, `"input":[` + says("user", "hi") + "," + says("user", "ho") + `]`, `"input":"hi","stream":true`} {
		a := newAPI(t, llmtest.Fail(500), llmtest.Fail(500))
		a.upstream.Otherwise(llmtest.Answer("ok"))
		id, native := a.conversation(`{}`)
		body := `{"model":"wood","conversation":"` + id + `",` + form + `}`
		question := strings.Count(form, "h")
		for i, server := range []*api{a, a.again(), a.again()} {
			failing := i < 2
			status, got, _ := server.send("acme", "POST", "/responses", body, retryHeader, fmt.Sprint(i))
			if failing == (status == 200 && !strings.Contains(got, "response.failed")) {
				t.Errorf("try %d: %d %s", i, status, got)
			}
			want := strings.TrimSuffix("user:hi user:ho", map[int]string{1: " user:ho"}[question])
			size := question
			if !failing {
				want, size = want+" assistant:ok", question+1
			}
			if said := a.items(id, "?order=asc").says(); said != want || a.treeSize(native) != size {
				t.Errorf("after try %d the items are %s, want %s; %d messages", i, said, want, a.treeSize(native))
			}
		}
		if again := a.try(body, retryHeader, "3"); again == "" || a.treeSize(native) != question+1 {
			t.Errorf("another retry makes %d messages", a.treeSize(native))
		}
		next, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","conversation":"`+id+`","input":"on"}`)
		if said := a.items(id, "?order=asc").says(); !strings.HasSuffix(said, "assistant:ok user:on assistant:ok") {
			t.Errorf("the items are %s after %s", said, next)
		}
	}
}

// TestFailedFirstTurnOfItsOwn holds that a response which begins a conversation
// leaves it with its question as the active head, whatever comes of the answer.
func TestFailedFirstTurnOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Fail(500))
	gate := make(chan struct{})
	a.upstream.Otherwise(llmtest.After(gate, llmtest.Answer("ok")))
	head := func(id uuid.UUID) string {
		c, err := a.store.ForTenant("acme").Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		m, err := a.store.ForTenant("acme").Message(t.Context(), id, c.HeadID)
		if err != nil {
			t.Fatal(err)
		}
		return string(m.Body)
	}
	for _, text := range []string{"that fails", "that runs"} {
		id, whole := a.stream(`{"model":"wood","stream":true,"input":"` + text + `"}`)
		n, err := openai.ParseResponseID(id)
		if err != nil {
			t.Fatal(err)
		}
		if text == "that fails" {
			whole()
		}
		if got := head(n.Conversation); !strings.Contains(got, text) {
			t.Errorf("the head of a response %s is %s", text, got)
		}
		if text == "that runs" {
			close(gate)
			whole()
			if got := head(n.Conversation); !strings.Contains(got, "ok") {
				t.Errorf("its head at the end is %s", got)
			}
		}
	}
}

// TestFailedResponseElsewhere holds that a response which failed before it said
// anything can be read, streamed and deleted on every server.
func TestFailedResponseElsewhere(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := setup{pool: pool, script: []llmtest.Behaviour{llmtest.Fail(429)}}.serve(t)
	b := setup{pool: pool}.serve(t)
	b.secrets = a.secrets
	id, whole := a.stream(`{"model":"wood","stream":true,"input":"hi","instructions":"Be brief.","metadata":{"a":"b"}}`)
	streamed := whole()
	for _, s := range []*api{a, b} {
		got := s.get("GET", "/responses/"+id, "")
		if failure, _ := got["error"].(map[string]any); got["status"] != "failed" || failure["code"] != "rate_limit_exceeded" || got["instructions"] != "Be brief." || got["completed_at"] != nil {
			t.Errorf("%v", got)
		}
		again, _ := s.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", "")
		if strings.Count(again, "event: ") != strings.Count(streamed, "event: ") || !strings.Contains(again, "event: response.failed\n") {
			t.Errorf("streamed again it is\n%s\nand was\n%s", again, streamed)
		}
		if items, _ := s.ask(200, "acme", "GET", "/responses/"+id+"/input_items", ""); !strings.Contains(items, `"text":"hi"`) {
			t.Errorf("its input is %s", items)
		}
		s.ask(404, "other", "GET", "/responses/"+id, "")
		s.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"on","previous_response_id":"`+id+`"}`)
	}
	b.ask(200, "acme", "DELETE", "/responses/"+id, "")
	for _, s := range []*api{a, b} {
		s.ask(404, "acme", "GET", "/responses/"+id, "")
	}
}

// TestNothingToAnswer holds that a request which says nothing, in a conversation
// where nobody said anything, is told what it lacks.
func TestNothingToAnswer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, native := a.conversation(`{}`)
	for _, rest := range []string{"", `,"input":[]`, `,"store":false`, `,"stream":true`, `,"background":true`} {
		if got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","conversation":"`+id+`"`+rest+`}`); !strings.Contains(got, `"param":"input","code":"missing_required_parameter"`) {
			t.Errorf("%s: %s", rest, got)
		}
	}
	if n := a.treeSize(native); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// TestTooLargeAMessage holds that a message which the tree couldn't hold is refused
// by its place in the input, on every route that stores one.
func TestTooLargeAMessage(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.conversation(`{}`)
	large := strings.Repeat("hazel ", tree.MaxBodyBytes/6)
	items := says("user", "hi") + "," + says("user", large)
	for _, test := range []struct{ path, body, param string }{
		{"/responses", `{"model":"wood","input":"` + large + `"}`, "input[0]"},
		{"/responses", `{"model":"wood","input":[` + items + `]}`, "input[1]"},
		{"/responses", `{"model":"wood","conversation":"` + id + `","input":[` + items + `]}`, "input[1]"},
		{"/conversations", `{"items":[` + items + `]}`, "items[1]"},
		{"/conversations/" + id + "/items", `{"items":[` + items + `]}`, "items[1]"},
		{"/chat/completions", chatBody(store, said("user", "hi"), said("user", large)), "messages[1]"},
	} {
		if got, _ := a.ask(413, "acme", "POST", test.path, test.body); !strings.Contains(got, `"param":"`+test.param+`","code":"message_too_large"`) {
			t.Errorf("%s: %s", test.path, got)
		}
	}
}
