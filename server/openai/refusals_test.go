package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// A refusal is a request that is refused, and what the answer has.
type refusal struct {
	status                   int
	method, path, body, want string
}

// refuses holds that requests are refused as OpenAI refuses them.
func (a *api) refuses(all []refusal) {
	a.t.Helper()
	for _, r := range all {
		status, got, header := a.send("acme", r.method, r.path, r.body)
		if status != r.status || !strings.Contains(got, r.want) || !strings.HasPrefix(got, `{"error":{"message":`) || header.Get("X-Should-Retry") != "false" || header.Get("X-Request-Id") == "" {
			a.t.Errorf("%s %s %.200s: %d %s, want %d %s; %v", r.method, r.path, r.body, status, got, r.status, r.want, header)
		}
	}
}

// What is refused only once the server has looked. The tables of the reader have the rest.
func TestRefusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	hi := said("user", "hi")
	node := wire.NodeID{Conversation: uuid.New(), Node: uuid.New()}
	unknown, completion := node.ResponseID(), "/chat/completions/"+node.CompletionID()
	create := func(members string) string { return `{"model":"wood",` + members + `}` }
	id, _ := a.conversation(`{}`)
	large := strings.Repeat("hazel ", tree.MaxBodyBytes/6)
	items := says("user", "hi") + "," + says("user", large)
	a.refuses([]refusal{
		{400, "POST", "/responses", ``, `"code":"invalid_json"`},
		{404, "POST", "/responses", `{"model":"none","input":"hi"}`, `"code":"model_not_found"`},
		{400, "POST", "/responses", create(`"input":[{"role":"user","content":"hi"},{"type":"compaction","encrypted_content":"x"}]`), `"param":"input[1].encrypted_content"`},
		{400, "POST", "/responses", create(`"store":false,"input":[{"role":"user","content":"hi"},{"type":"compaction","encrypted_content":"coppice.v1.AAAA"}]`), `"param":"input[1].encrypted_content"`},
		{400, "POST", "/responses", create(`"store":false,"input":"hi","previous_response_id":"` + unknown + `"`), `"code":"previous_response_not_found"`},
		{400, "POST", "/responses", create(`"store":false,"input":[{"type":"function_call_output","call_id":"c","output":"x"}]`), `No tool call found for function call output with call_id c.`},
		{400, "POST", "/responses", create(`"input":[{"type":"compaction_trigger"}],"previous_response_id":"` + unknown + `"`), `"code":"previous_response_not_found"`},
		{400, "POST", "/responses/compact", create(`"previous_response_id":"` + unknown + `"`), `"code":"previous_response_not_found"`},
		{400, "POST", "/responses/compact", create(`"input":[{"role":"developer","content":"hi"}]`), `There is nothing to compact`},
		{400, "POST", "/responses/compact", create(`"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]`), `No tool output found for function call c.`},
		{400, "POST", "/responses/input_tokens", `{"model":"wood"}`, `"param":"input"`},
		{404, "DELETE", "/responses/" + unknown, ``, `not found.","type":"invalid_request_error","param":null`},
		{400, "POST", "/responses", create(`"input":"hi","previous_response_id":"` + unknown + `"`), `"code":"previous_response_not_found"`},
		{404, "POST", "/responses", create(`"input":"hi","conversation":"` + wire.ConversationID(uuid.New()) + `"`), `"param":"conversation"`},
		{400, "POST", "/responses", create(`"input":[{"id":"` + strings.Replace(unknown, "resp", "msg", 1) + `_1"}]`), `"param":"input[0].id","code":"item_not_found"`},
		{404, "GET", "/responses/" + unknown, ``, `not found.","type":"invalid_request_error","param":null`},
		{404, "GET", "/responses/resp_x?stream=true", ``, `Response with id 'resp_x' not found.`},
		{400, "POST", "/chat/completions", chatBody(store, said("system", ""), hi), `"param":"messages[0].content"`},
		{400, "POST", "/chat/completions", chatBody(store, hi, `{"role":"tool","tool_call_id":"call_1","content":"22"}`), `"param":"messages[1].tool_call_id"`},
		{404, "POST", "/chat/completions", strings.Replace(chatBody(store, hi), "wood", "none", 1), `"code":"model_not_found"`},
		{404, "GET", completion, ``, `Chat completion with id '` + node.CompletionID() + `' not found.`},
		{404, "GET", "/chat/completions/x", ``, `Chat completion with id 'x' not found.`},
		{404, "GET", "/models/none", ``, `"code":"model_not_found"`},
		{404, "GET", "/nowhere", ``, `"type":"invalid_request_error"`},
		{405, "DELETE", "/models", ``, `"code":"method_not_allowed"`},
		// A message that the tree couldn't hold is refused by its place, on every route that stores one.
		{413, "POST", "/responses", create(`"input":"` + large + `"`), `"param":"input[0]","code":"message_too_large"`},
		{413, "POST", "/responses", create(`"input":[` + items + `]`), `"param":"input[1]","code":"message_too_large"`},
		{413, "POST", "/responses", create(`"conversation":"` + id + `","input":[` + items + `]`), `"param":"input[1]","code":"message_too_large"`},
		{413, "POST", "/conversations", `{"items":[` + items + `]}`, `"param":"items[1]","code":"message_too_large"`},
		{413, "POST", "/conversations/" + id + "/items", `{"items":[` + items + `]}`, `"param":"items[1]","code":"message_too_large"`},
		{413, "POST", "/chat/completions", chatBody(store, hi, said("user", large)), `"param":"messages[1]","code":"message_too_large"`},
	})
	check.Equal(t, "requests to the model", len(a.upstream.Requests()), 0)
	check.Equal(t, "what is stored", fmt.Sprint(a.everything()), "1 0")
	refused, _ := a.ask(401, "nobody", "GET", "/models", "")
	check.Has(t, "a request without a key", refused, `"code":"invalid_api_key"`)
}

// before is the message that an answer's question follows.
func (a *api) before(c completion) string {
	a.t.Helper()
	question := a.message(c.conversation, c.head).ParentID
	return a.message(c.conversation, question.String()).ParentID.String()
}

// A refused request leaves no conversation, unless another said something there meanwhile.
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
			_, err := a.store.ForTenant("acme").Append(t.Context(), list[0].ID, list[0].HeadID, tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"kept"}`))})
			check.Equal(t, "error", err, nil)
		})
		traced := a.again(func(s *setup) { s.pool = pool })
		for path, body := range map[string]string{"/responses": `{"model":"wood","input":[` + items + `]}`, "/conversations": `{"items":[{"type":"function_call_output","call_id":"c","output":"x"}]}`} {
			traced.ask(400, "acme", "POST", path, body)
			check.Equal(t, path+": what is stored", fmt.Sprint(a.everything()), fmt.Sprint(want, want))
			for _, c := range a.listed("acme") {
				check.NoError(t, a.store.ForTenant("acme").DeleteConversation(t.Context(), c.ID))
			}
		}
	}
}
