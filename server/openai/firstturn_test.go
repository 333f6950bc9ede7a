package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestFailedFirstTurnOfItsOwn holds that a response which begins a conversation
// leaves it with its question as the active head, whatever comes of the answer.
func TestFailedFirstTurnOfItsOwn(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	a := newAPI(t, llmtest.Fail(500), llmtest.After(gate, llmtest.Answer("ok")))
	headIs := func(id, want string) {
		t.Helper()
		n := nodeOf(t, id).Conversation
		c := check.Must(a.store.ForTenant("acme").Conversation(t.Context(), n))(t)
		if got := string(a.message(n.String(), c.HeadID.String()).Body); !strings.Contains(got, want) {
			t.Errorf("the head is %s, want %s", got, want)
		}
	}
	id, whole := a.stream(`{"model":"wood","stream":true,"background":true,"input":"that fails"}`)
	whole()
	headIs(id, "that fails")
	id, whole = a.stream(`{"model":"wood","stream":true,"input":"that runs"}`)
	headIs(id, "that runs")
	close(gate)
	whole()
	headIs(id, "ok")
}

// TestFailedResponseElsewhere holds that a response which failed before it said
// anything can be read, streamed and deleted on every server.
func TestFailedResponseElsewhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Fail(429))
	b := a.again()
	id, whole := a.stream(`{"model":"wood","stream":true,"background":true,"input":"hi","instructions":"Be brief.","metadata":{"a":"b"}}`)
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
	a.ask(404, "acme", "GET", "/responses/"+id, "")
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

// TestRefusedOpening holds that of a request which is refused no conversation is
// left, unless another request has said something there meanwhile.
func TestRefusedOpening(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	items := strings.TrimSuffix(strings.Repeat(says("user", strings.Repeat("a b c d e f g h ", 20_000))+",", 3), ",")
	for want := range 2 {
		pool := dbtest.AfterQuery(t, a.pool, "InsertConversation", func() {
			if want == 0 {
				return
			}
			list := a.listed("acme")
			if _, err := a.store.ForTenant("acme").Append(t.Context(), list[0].ID, list[0].HeadID, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"kept"}`))}); err != nil {
				t.Error(err)
			}
		})
		traced := a.again(func(s *setup) { s.pool = pool })
		for path, body := range map[string]string{"/responses": `{"model":"wood","input":[` + items + `]}`, "/conversations": `{"items":[{"type":"function_call_output","call_id":"c","output":"x"}]}`} {
			traced.ask(400, "acme", "POST", path, body)
			if c, m := a.everything(); c != want || m != want {
				t.Errorf("%s: %d conversations with %d messages, want %d", path, c, m, want)
			}
			for _, c := range a.listed("acme") {
				check.NoError(t, a.store.ForTenant("acme").DeleteConversation(t.Context(), c.ID))
			}
		}
	}
}
