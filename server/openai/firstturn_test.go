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
		a.tells(413, "POST", test.path, test.body, `"param":"`+test.param+`","code":"message_too_large"`)
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
