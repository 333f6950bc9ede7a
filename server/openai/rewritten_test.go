package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestRewrittenSteps holds that the steps of a turn with a call are one branch, in
// whatever way a client writes back what it was told: nothing is stored twice, and no
// leaf is left behind.
func TestRewrittenSteps(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		if strings.Contains(string(req.Messages[len(req.Messages)-1]), `"role":"user"`) {
			return llmtest.CallTools(llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"at":"Köln","days":1}`})
		}
		return llmtest.Answer("It is warm.")
	}))
	calls := func(name, arguments string) string {
		return fmt.Sprintf(`"tool_calls":[{"id":"call_1","type":"function","function":{"name":%q,"arguments":%q}}]`, name, arguments)
	}
	item := func(name, arguments string) string {
		return fmt.Sprintf(`{"type":"function_call","call_id":"call_1","name":%q,"arguments":%q}`, name, arguments)
	}
	for name, test := range map[string]struct{ call, answer string }{
		"as it came":                 {`{"role":"assistant","content":null,` + calls("weather", `{"at":"Köln","days":1}`) + `}`, `"content":"It is warm."`},
		"spaces":                     {`{"role":"assistant","content":"",` + calls("weather", `{ "at": "Köln", "days": 1 }`) + `}`, `"content":"It is warm.\n"`},
		"order and number":           {`{"role":"assistant",` + calls("weather", `{"days":1.0,"at":"Köln"}`) + `}`, `"content":"It is warm.\r\n"`},
		"escapes":                    {`{"role":"assistant","content":[],` + calls("weather", `{"at":"K\u00f6ln","days":1}`) + `}`, `"content":[{"type":"text","text":"It is warm. "}]`},
		"defaults added":             {`{"role":"assistant","content":null,` + calls("weather", `{"at":"Köln","days":1,"unit":"C"}`) + `}`, `"content":"It is warm.","refusal":null`},
		"a call that is renamed":     {`{"role":"assistant","content":null,` + calls("invalid", `{"tool":"weather","error":"unknown"}`) + `}`, `"content":"It is warm.","annotations":[]`},
		"an assistant's name":        {`{"role":"assistant","name":"model","content":"",` + calls("weather", `{"at":"Köln","days":1}`) + `}`, `"content":"It is warm.","name":"model"`},
		"responses":                  {item("weather", `{"at":"Köln","days":1}`), ""},
		"responses, order, defaults": {item("weather", `{"unit":"C","days":1,"at":"Köln"}`), ""},
	} {
		path, list, more, result := "/chat/completions", "messages", "", `{"role":"tool","tool_call_id":"call_1","content":"12 degrees"}`
		if test.answer == "" {
			path, list, more = "/responses", "input", says("assistant", "It is warm.\n")
			result = `{"type":"function_call_output","call_id":"call_1","output":"12 degrees"}`
		} else {
			more = `{"role":"assistant",` + test.answer + `}`
		}
		history := []string{said("user", "How warm is it, "+name+"?")}
		conversation := ""
		send := func() {
			body := fmt.Sprintf(`{"model":"wood","store":true,%q:[%s]}`, list, strings.Join(history, ","))
			status, got, header := a.send("acme", "POST", path, body)
			if id := header.Get("X-Coppice-Conversation-Id"); status != 200 || conversation != "" && id != conversation {
				t.Fatalf("%s: in %s, and before in %s: %s", name, id, conversation, got)
			} else {
				conversation = id
			}
		}
		send()
		history = append(history, test.call, result)
		send()
		history = append(history, more, said("user", "And tomorrow?"))
		send()
		id := uuid.MustParse(conversation)
		leaves, err := a.store.ForTenant("acme").Branches(t.Context(), id, tree.Paging{})
		if n := a.treeSize(id); err != nil || n != 6 || len(leaves.Data) != 1 {
			t.Errorf("%s: %d messages and %d leaves, want 6 and 1; %v", name, n, len(leaves.Data), err)
		}
	}
}

// TestSessionGoesOn holds that the chat of a session is one branch, whatever its
// client changes at the beginning of its history or leaves out of it.
func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	const turns, window = 6, 4
	for name, shown := range map[string]func(turn int, chat []string) []string{
		"a changed system prompt": func(turn int, chat []string) []string {
			return append([]string{said("system", fmt.Sprint("It is ", turn, " o'clock."))}, chat...)
		},
		"a clock in the first message": func(turn int, chat []string) []string {
			return append([]string{said("user", fmt.Sprint("Hi at ", turn))}, chat[1:]...)
		},
		"a window": func(_ int, chat []string) []string {
			return append([]string{said("system", "Be brief.")}, chat[max(0, len(chat)-window):]...)
		},
		"a window of one turn": func(_ int, chat []string) []string { return chat[max(0, len(chat)-2):] },
	} {
		for path, list := range map[string]string{"/chat/completions": "messages", "/responses": "input"} {
			var chat []string
			conversations := map[string]bool{}
			for turn := range turns {
				chat = append(chat, said("user", fmt.Sprint("Question ", turn)))
				sent := shown(turn, chat)
				status, got, header := a.send("acme", "POST", path, fmt.Sprintf(`{"model":"wood","store":true,%q:[%s]}`, list, strings.Join(sent, ",")), "X-Coppice-Session", name+path)
				if status != 200 || strings.Count(a.prompt(), `"role":"user"`) != strings.Count(strings.Join(sent, ""), `"role":"user"`) {
					t.Fatalf("%s: %s, and the model was given %s", name, got, a.prompt())
				}
				conversations[header.Get("X-Coppice-Conversation-Id")] = true
				chat = append(chat, said("assistant", "ok"))
			}
			for id := range conversations {
				id := uuid.MustParse(id)
				leaves, err := a.store.ForTenant("acme").Branches(t.Context(), id, tree.Paging{})
				most := len(chat) + 1 // with a system prompt
				if n := a.treeSize(id); err != nil || len(conversations) != 1 || n > most || len(leaves.Data) != 1 {
					t.Errorf("%s by %s: %d conversations, %d messages and %d leaves; %v", name, path, len(conversations), n, len(leaves.Data), err)
				}
			}
		}
	}
}
