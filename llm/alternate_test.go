package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// TestAlternatingRoles has a chat template refuse two messages of one role in a
// row. They are joined, at once and in each later request.
func TestAlternatingRoles(t *testing.T) {
	t.Parallel()
	refuses := llmtest.FailWith(llmtest.Failure{Status: http.StatusBadRequest, Type: "BadRequestError", Message: "Conversation roles must alternate user/assistant/user/assistant/..."})
	s := llmtest.NewServer(t, refuses, llmtest.Answer("one"), llmtest.Answer("two"), refuses)
	c := client(t, s)
	req := llm.Request{}
	for _, m := range []string{
		`{"role":"system","content":"Be brief."}`, `{"role":"system","content":"Be kind."}`,
		`{"role":"user","content":"A summary."}`, `{"role":"user","content":[{"type":"text","text":"Go on."},{"type":"image_url","image_url":{"url":"x"}}]}`,
		`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"1"}`, `{"role":"tool","tool_call_id":"b","content":"2"}`,
		`{"role":"assistant","content":"Well."}`, `{"role":"assistant","content":"So."}`, `{"role":"user", "content":"Thanks."}`,
	} {
		req.Messages = append(req.Messages, json.RawMessage(m))
	}
	want := strings.Join([]string{
		`{"role":"system","content":"Be brief.\n\nBe kind."}`,
		`{"role":"user","content":[{"type":"text","text":"A summary."},{"type":"text","text":"Go on."},{"type":"image_url","image_url":{"url":"x"}}]}`,
		string(req.Messages[4]), string(req.Messages[5]), string(req.Messages[6]),
		`{"role":"assistant","content":"Well.\n\nSo."}`, string(req.Messages[9]),
	}, "\n")
	for i := range 2 {
		check.Must(c.Complete(t.Context(), req))(t)
		requests := s.Requests()
		var sent []string
		for _, m := range requests[len(requests)-1].Messages {
			sent = append(sent, string(m))
		}
		if got := strings.Join(sent, "\n"); len(requests) != i+2 || got != want {
			t.Errorf("after %d requests the model was sent\n%s\nwant\n%s", len(requests), got, want)
		}
	}
	if _, err := c.Complete(t.Context(), req); err == nil || len(s.Requests()) != 4 {
		t.Errorf("refused all the same: %v after %d requests", err, len(s.Requests()))
	}
}

// TestNoSystemMessage has a chat template refuse the system message, as Gemma's
// does. The user's first message then begins with it, from the next try on.
func TestNoSystemMessage(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.FailWith(llmtest.Failure{Status: http.StatusBadRequest, Message: "System role not supported"}), llmtest.Answer("one"))
	req := llm.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"system","content":"Be brief."}`), json.RawMessage(`{"role":"user","content":"Hello."}`)}}
	check.Must(client(t, s).Complete(t.Context(), req))(t)
	if sent := s.Requests()[1].Messages; len(sent) != 1 || string(sent[0]) != `{"role":"user","content":"Be brief.\n\nHello."}` {
		t.Errorf("the model was sent %s", sent)
	}
}

// TestKnownToAlternate asks a model that is configured so. It gets turns at once.
func TestKnownToAlternate(t *testing.T) {
	t.Parallel()
	s := llmtest.NewServer(t, llmtest.TakesTurns(llmtest.Answer("one")))
	families := check.Must(llm.KnownFamilies().With(llm.Family{Prefix: "strict", Window: 1000, AlternatesRoles: true}))(t)
	c := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "strict", HTTPClient: s.Client(), Families: families}))(t)
	hello := json.RawMessage(`{"role":"user","content":"Hello."}`)
	if _, err := c.Complete(t.Context(), llm.Request{Messages: []json.RawMessage{hello, hello}}); err != nil || len(s.Requests()) != 1 {
		t.Errorf("after %d requests: %v", len(s.Requests()), err)
	}
}

// TestByTurns makes histories of any order of roles. Joined, a strict server takes
// them; those that it takes unjoined are known, and keep their bytes.
func TestByTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var messages []json.RawMessage
		var roles chat.Alternation
		open := false
		add := func(kind string) {
			text := fmt.Sprint("m", len(messages))
			body := fmt.Sprintf(`{"role":%q,"content":%q}`, kind, text)
			switch kind {
			case "call":
				body = fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, text)
			case "tool":
				body = fmt.Sprintf(`{"role":"tool","tool_call_id":"c","content":%q}`, text)
			}
			messages = append(messages, json.RawMessage(body))
			m := chat.Read(messages[len(messages)-1])
			roles.Add(m.Role, len(m.Calls) > 0)
			open = kind == "call"
		}
		for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"system", "developer", "user", "assistant", "call"}), 0, 12).Draw(t, "roles") {
			if open { // a context has no open call before its end
				add("tool")
			}
			add(kind)
		}
		if open {
			add("tool")
		} else {
			add("user")
		}
		refused := llmtest.CheckTurns(messages)
		if roles.Alternate() != (refused == nil) {
			t.Fatalf("alternating: %t, and a server says %v of %s", roles.Alternate(), refused, messages)
		}
		for _, noSystem := range []bool{false, true} {
			joined, at := chat.ByTurns(messages, noSystem)
			if err := llmtest.CheckTurns(joined); err != nil {
				t.Fatalf("%v: %s", err, joined)
			}
			for i, m := range messages {
				if !strings.Contains(string(joined[at[i]]), chat.Read(m).Text()) {
					t.Fatalf("message %d is not in %s", i, joined[at[i]])
				}
				if roles.Alternate() && !noSystem && string(joined[i]) != string(m) {
					t.Fatalf("%s became %s", m, joined[i])
				}
			}
		}
	})
}
