package openai_test

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
)

// A history is known by its bytes' meaning, and by nothing that only looks alike.
func TestOddHistories(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	complete := func(messages ...string) completion {
		t.Helper()
		c := a.complete("acme", chatBody(store, messages...), "X-Coppice-Session", "odd")
		if got := a.prompt(); got != strings.Join(messages, " ") {
			t.Errorf("the model was given %s, want %v", got, messages)
		}
		return c
	}
	hi := said("user", "Hi")
	depth := func(c completion) int { return int(a.message("acme", c.conversation, c.head).Depth) }
	size := func() int { return a.messages("acme", complete(hi).conversation) }
	first := complete(hi)
	n := size()
	for i, test := range []struct {
		messages   []string
		depth, new int
	}{
		{[]string{hi, hi}, 3, 2}, // the same message twice
		{[]string{hi, hi, hi}, 4, 2},
		{[]string{hi, hi}, 3, 1},
		{[]string{said("user", "Caf\u00e9")}, 2, 2},
		{[]string{said("user", "Cafe\u0301")}, 2, 2}, // another text
		{[]string{`{"role":"user","content":"Caf\u00e9"}`}, 2, 1},
		{[]string{`{"content":[{"text":"Caf\u00e9","type":"text"}],"role":"user","name":null}`}, 2, 1},
		{[]string{said("user", " Hi")}, 2, 2},
		{[]string{said("developer", "Be brief."), hi}, 3, 3},
		{[]string{said("system", "Be brief."), hi}, 3, 1},
		{[]string{hi, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"a","content":""}`}, 4, 3},
		{[]string{hi, `{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"f"},"type":"function","id":"a"}],"content":""}`, `{"role":"tool","content":[{"type":"text","text":""}],"tool_call_id":"a"}`}, 4, 1},
		{[]string{hi, `{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"b","content":""}`}, 4, 3},
		{[]string{hi, said("assistant", "No."), said("user", "Why?")}, 4, 3},                                                           // edited in the middle
		{[]string{hi, said("assistant", "Yes."), said("assistant", "Yes."), said("user", "Why?")}, 5, 3},                               // an answer twice
		{[]string{hi, said("assistant", "Yes."), said("user", "Why?")}, 4, 2},                                                          // what an earlier test may have
		{[]string{hi, `{"role":"assistant","content":"Yes.","refusal":"","annotations":[],"audio":null}`, said("user", "Why?")}, 4, 1}, // an empty refusal
	} {
		c := complete(test.messages...)
		if got := depth(c); got != test.depth-1 || c.conversation != first.conversation {
			t.Errorf("history %d has depth %d, want %d, in %s", i, got, test.depth, c.conversation)
		}
		after := size()
		if got := after - n - 1; got != test.new {
			t.Errorf("history %d stored %d messages, want %d", i, got, test.new)
		}
		n = after
	}
}

// An assistant's message that a client adds after one with an id is no part of that one.
func TestMessageBesideAnID(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."))
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	r := a.create(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},
		{"type":"message","id":"` + first.Output[0].ID + `","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is a wood.","annotations":[]}]},
		{"role":"assistant","content":"By the way, I was edited."},{"role":"user","content":"Go on."}]}`)
	if got := a.prompt(); strings.Count(got, "It is a wood.") != 1 || !strings.Contains(got, "By the way") {
		t.Errorf("the model was given %s", got)
	}
	n, _ := openai.ParseResponseID(first.ID)
	m, _ := openai.ParseResponseID(r.ID)
	if n.Conversation != m.Conversation {
		t.Error("it is another conversation")
	}
	// Two of them in a row, each with its id, are two messages of the tree.
	id, _ := a.conversation(`{"items":[` + says("user", "q") + `]}`)
	one, two := a.add(id, says("assistant", "a1")), a.add(id, says("assistant", "a2"))
	a.create(`{"model":"wood","input":[` + says("user", "q") + `,{"role":"assistant","id":"` + one.Data[0].ID + `","content":"a1"},{"role":"assistant","id":"` + two.Data[0].ID + `","content":"a2"},{"role":"user","content":"Go on."}]}`)
	if got := a.prompt(); strings.Count(got, "a1") != 1 || strings.Count(got, "a2") != 1 {
		t.Errorf("the model was given %s", got)
	}
	if items := a.items(id, ""); len(items.Data) != 5 && len(items.Data) != 3 {
		t.Errorf("%s", items.says())
	}
}

// A message that says nothing goes to the model, where nothing is recorded.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Record: true})
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	for _, empty := range []string{said("system", ""), said("user", ""), said("assistant", ""), `{"role":"assistant","content":null}`, `{"role":"assistant"}`, `{"role":"user","content":[{"type":"text","text":""}]}`} {
		messages := []string{empty, said("user", "Hi")}
		status, got, _ := a.send("acme", "POST", "/chat/completions", chatBody("", messages...))
		if status != 200 || a.prompt() != strings.Join(messages, " ") {
			t.Errorf("%s: %d %s", empty, status, got)
		}
	}
	if n := a.conversations("acme"); n != 1 { // the message with a part is recorded
		t.Errorf("%d conversations", n)
	}
	if status, got, _ := a.send("acme", "POST", "/chat/completions", chatBody(store, said("system", ""), said("user", "Hi"))); status != 400 || !strings.Contains(got, `"param":"messages[0].content"`) {
		t.Errorf("%d %s", status, got)
	}
}

// Where the same was said twice below one answer, a history is followed into the one
// that it goes on from.
func TestSameQuestionTwice(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."), llmtest.Answer("Every ten years."), llmtest.Answer("Every seven years."))
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	n, err := openai.ParseResponseID(first.ID)
	if err != nil {
		t.Fatal(err)
	}
	var heads []string
	for range 2 {
		heads = append(heads, a.create(`{"model":"wood","previous_response_id":"`+first.ID+`","input":"How often?"}`).ID)
	}
	for i, answer := range []string{"Every ten years.", "Every seven years."} {
		r := a.create(`{"model":"wood","input":[` + says("user", "What is a coppice?") + `,{"type":"message","id":"` + first.Output[0].ID + `","role":"assistant","content":"It is a wood."},` +
			says("user", "How often?") + `,` + says("assistant", answer) + `,` + says("user", "Really?") + `]}`)
		if got := a.prompt(); strings.Count(got, "Every") != 1 || !strings.Contains(got, answer) {
			t.Errorf("the model was given %s", got)
		}
		m, err := openai.ParseResponseID(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.before(completion{conversation: m.Conversation.String(), head: m.Node.String()}); openai.ConversationID(m.Conversation) != openai.ConversationID(n.Conversation) || !strings.Contains(got, "-") {
			t.Errorf("%s", got)
		} else if want, _ := openai.ParseResponseID(heads[i]); got != want.Node.String() {
			t.Errorf("after %s it goes on from %s, want %s", answer, got, want.Node)
		}
	}
	if got := a.messages("acme", n.Conversation.String()); got != 2+4+4 {
		t.Errorf("%d messages", got)
	}
}

// Members of a request that mean nothing here, and large or odd ones that do.
func TestOddMembers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("Indeed."))
	pairs := func(n, name, value int) string {
		var all []string
		for i := range n {
			all = append(all, `"`+strings.Repeat("é", name-1)+string(rune('a'+i))+`":"`+strings.Repeat("🌳", value)+`"`)
		}
		return `{` + strings.Join(all, ",") + `}`
	}
	for _, test := range []struct {
		status        int
		members, want string
	}{
		{200, `"metadata":` + pairs(16, 64, 512), `"status":"completed"`},
		{400, `"metadata":` + pairs(17, 1, 1), `"param":"metadata"`},
		{400, `"metadata":` + pairs(1, 65, 1), `"param":"metadata"`},
		{400, `"metadata":` + pairs(1, 1, 513), `"param":"metadata"`},
		{200, `"metadata":{"a":"1","a":"2"}`, `"metadata":{"a":"2"}`},
		{200, `"metadata":null,"include":null,"tools":null,"text":null,"reasoning":null,"truncation":null,"context_management":null,"tool_choice":null,"instructions":null,"store":null,"stream":null,"user":null,"temperature":null,"previous_response_id":null,"conversation":null`, `"status":"completed"`},
		{200, `"include":["reasoning.encrypted_content","no.such.thing"],"client_metadata":{"a":{"b":[1]}},"stream_options":{"include_obfuscation":false}`, `"status":"completed"`},
		{400, `"include":"all"`, `"param":"include"`},
		{400, `"temperature":1e400`, `"param":"temperature"`},
		{400, `"temperature":NaN`, `"code":"invalid_json"`},
		{400, `"temperature":2.0000001`, `"param":"temperature"`},
		{200, `"temperature":2.0e0`, `"temperature":2,`},
		{400, `"max_output_tokens":16.5`, `"param":"max_output_tokens"`},
		{400, `"max_output_tokens":99999999999999999999`, `"param":"max_output_tokens"`},
		{400, `"zzz":` + strings.Repeat("[", 80) + strings.Repeat("]", 80), `nests arrays and objects`},
		{400, `"zzz":"\u0000"`, `NUL character`},
		{400, "\"zzz\":\"\xff\"", `"code":"invalid_utf8"`},
		{200, `"model":"none","model":"wood"`, `"model":"wood"`},
		{200, `"prompt_cache_key":"` + strings.Repeat("🌳", 64) + `"`, `"status":"completed"`},
		{400, `"prompt_cache_key":"` + strings.Repeat("k", 65) + `"`, `"param":"prompt_cache_key"`},
		{400, `"context_management":{"type":"compaction"}`, `"param":"context_management"`},
		{400, `"context_management":[{"type":"other"}]`, `"param":"context_management[0].type"`},
		{400, `"tools":[{"type":"function"}]`, `"param":"tools[0].name"`},
		{400, `"tool_choice":{"type":"web_search"}`, `"param":"tool_choice`},
		{400, `"text":{"format":{"type":"json_schema","name":"x"}}`, `"param":"text.format.schema"`},
		{400, `"previous_response_id":""`, `previous_response_not_found`},
		{400, `"conversation":{"id":"conv_x"}`, `"param":"conversation"`},
		{400, `"conversation":7`, `"param":"conversation"`},
	} {
		body := `{"model":"wood","input":"hi",` + test.members + `}`
		status, got, header := a.send("acme", "POST", "/responses", body)
		if status != test.status && !(status == 404 && strings.Contains(test.members, "conv_x")) || !strings.Contains(got, test.want) || header.Get("X-Request-Id") == "" {
			t.Errorf("%.200s: %d %s, want %d %s", test.members, status, got, test.status, test.want)
		}
		if status != 200 && (!strings.HasPrefix(got, `{"error":{"message":"`) || strings.Count(got, `"type":"invalid_request_error","param":`) != 1 || header.Get("X-Should-Retry") != "false") {
			t.Errorf("%.200s: %s %v", test.members, got, header)
		}
	}
}
