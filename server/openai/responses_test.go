package openai_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// codex is a request as Codex sends it.
const codex = `{"model":"wood","instructions":"Be terse.","store":false,"stream":true,"include":["reasoning.encrypted_content"],"parallel_tool_calls":true,
	"reasoning":{"summary":"auto"},"prompt_cache_key":"thread","client_metadata":{"x":"y"},"tool_choice":"auto","tools":[
		{"type":"function","name":"shell","parameters":{"type":"object"},"strict":false},
		{"type":"namespace","name":"mcp__clock","description":"","tools":[{"type":"function","name":"now","parameters":{"type":"object"}}]},{"type":"web_search"}],
	"input":[{"type":"message","role":"developer","id":"msg_0199","content":[{"type":"input_text","text":"Mind the hazel."}]},
		{"type":"message","role":"user","id":"msg_019a","content":[{"type":"input_text","text":"What time is it?"}]}%s]}`

// TestStoreFalse holds that of a request with store: false nothing is kept, that a client with its
// whole history, as Codex, gets on, and that one may go on from an answer that is kept.
func TestStoreFalse(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_1", Name: "mcp__clock__now", Arguments: `{}`}
	a := newAPI(t, llmtest.CallTools(call), llmtest.Answer("Noon."), llmtest.Answer("It is a wood."), llmtest.Answer("Indeed."), llmtest.Answer("Ten years."))
	streamed, header := a.ask(200, "acme", "POST", "/responses", fmt.Sprintf(codex, ""))
	check.That(t, header.Get("X-Coppice-Head-Id") == "" && header.Get("X-Coppice-Conversation-Id") == "",
		"the header names what isn't there: %v", header)
	check.Has(t, "the stream", streamed, "event: response.created\n", `"type":"function_call"`, `"namespace":"mcp__clock","name":"now"`, `"store":false`, `"usage":{`, "data: [DONE]")
	if tools := string(a.upstream.Requests()[0].Body); !strings.Contains(tools, `"mcp__clock__now"`) || strings.Contains(tools, "web_search") || !strings.Contains(a.prompt(), "Be terse.") || !strings.Contains(a.prompt(), "Mind the hazel.") {
		t.Errorf("the model was given %s", tools)
	}
	again, _ := a.ask(200, "acme", "POST", "/responses", fmt.Sprintf(codex, `,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},
		{"type":"function_call","id":"fc_1","call_id":"call_1","namespace":"mcp__clock","name":"now","arguments":"{}"},
		{"type":"function_call_output","id":"fco_0199","call_id":"call_1","output":"12:00"}`))
	check.That(t, strings.Contains(again, `"text":"Noon."`) && strings.Contains(a.prompt(), `"tool_call_id":"call_1"`) && len(a.listed("acme")) == 0,
		"%s after %s", again, a.prompt())
	id := finalID(t, again)
	a.ask(404, "acme", "GET", "/responses/"+id, "")
	a.ask(404, "acme", "DELETE", "/responses/"+id, "")
	for _, members := range []string{``, `"store":false,`} {
		a.tells(400, "POST", "/responses", `{"model":"wood",`+members+`"input":"hi","previous_response_id":"`+id+`"}`, "previous_response_not_found")
	}
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	a.create(`{"model":"wood","input":"Really?","store":false,"previous_response_id":"` + first.ID + `"}`)
	if got := a.prompt(); !strings.Contains(got, "It is a wood.") || !strings.HasSuffix(got, `{"role":"user","content":"Really?"}`) {
		t.Errorf("the model was given %s", got)
	}
	a.create(`{"model":"wood","input":"How often?","previous_response_id":"` + first.ID + `"}`)
	check.Lacks(t, "the model was given", a.prompt(), "Really?")
}

// An answer that isn't to be stored ends with its client, and a retry gets another one.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"false", "true"} {
		a := setup{script: []llmtest.Behaviour{llmtest.HangMidway("It is a wood that is cut"), llmtest.Answer("Hello.")}, replies: reply.Config{MaxPerTenant: 1}}.serve(t)
		ctx, leave := context.WithCancel(t.Context())
		res := check.Must(a.do(ctx, "acme", "POST", "/openai/v1/responses", `{"model":"wood","input":"hi","store":false,"stream":true}`, "X-Coppice-Record", record))(t)
		defer res.Body.Close()
		// Only once the model speaks is it the first request that it hangs for.
		for lines, line := bufio.NewReader(res.Body), ""; line != "event: response.output_text.delta\n"; {
			line = check.Must(lines.ReadString('\n'))(t)
		}
		leave()
		check.Eventually(t, "room for the next answer", func() bool {
			status, got, _ := a.send("acme", "POST", "/responses", `{"model":"wood","input":"hi","store":false}`, "X-Coppice-Record", record, retryHeader, "1")
			return status == 200 && strings.Contains(got, "Hello.")
		})
		_, messages := a.everything()
		check.Equal(t, "recorded "+record, messages == 3, record == "true")
	}
}

// An input that doesn't fit is refused before a model is asked, unless it may be folded.
func TestTruncation(t *testing.T) {
	t.Parallel()
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens = 3000, 300
	a := setup{contexts: summarize.Config{Settings: settings}}.serve(t)
	a.upstream.Otherwise(llmtest.Answer("They talk of hazel, and of how it grows again."))
	long := strings.Repeat("Hazel grows again after it was cut to the ground. ", 80) // about 880 tokens
	previous := ""
	for range 3 {
		r := a.create(`{"model":"wood","truncation":"auto","input":"` + long + `"` + previous + `}`)
		previous = `,"previous_response_id":"` + r.ID + `"`
	}
	asked := len(a.upstream.Requests())
	for _, extra := range []string{``, `,"truncation":"disabled"`, `,"store":false`, `,"stream":true`} {
		got, _ := a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"`+long+long+`"`+previous+extra+`}`)
		check.Has(t, extra, got, `"code":"context_length_exceeded"`, `"param":"input"`)
	}
	a.ask(400, "acme", "POST", "/responses", `{"model":"wood","input":"`+long+long+long+long+`"}`)
	check.Equal(t, "requests to the model", len(a.upstream.Requests()), asked)
	check.Equal(t, "conversations", len(a.listed("acme")), 1)
	for _, extra := range []string{``, `,"store":false`} {
		r := a.create(`{"model":"wood","truncation":"auto","input":"And now? ` + long + `"` + previous + extra + `}`)
		check.Equal(t, "status", r.Status, "completed")
		check.Has(t, "the model was given", a.prompt(), "And now?")
	}
}

// TestInputTokens holds that what is counted is what a model would read.
func TestInputTokens(t *testing.T) {
	t.Parallel()
	a := setup{script: []llmtest.Behaviour{llmtest.Answer("It is a wood.")}}.serve(t)
	count := func(body string) float64 {
		t.Helper()
		got := a.get("POST", "/responses/input_tokens", body)
		check.Equal[any](t, "the object", got["object"], "response.input_tokens")
		return got["input_tokens"].(float64)
	}
	one := count(`{"input":"What is a coppice?"}`)
	two := count(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},{"role":"user","content":"What is a coppice?"}]}`)
	check.That(t, one >= 5 && two == 2*one, "%v tokens, and twice that %v", one, two)
	with := count(`{"model":null,"input":"What is a coppice?","instructions":"Be terse.","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`)
	check.That(t, with > one+10, "instructions and a tool cost %v", with-one)
	first := a.create(`{"model":"wood","input":"What is a coppice?"}`)
	more := count(`{"input":"What is a coppice?","previous_response_id":"` + first.ID + `"}`)
	check.That(t, more > 2*one, "with the branch it is %v", more)
	check.Equal(t, "conversations", len(a.listed("acme")), 1)
	check.Equal(t, "requests to the model", len(a.upstream.Requests()), 1)
}

// TestResponses holds what a response says at once and later, and that one that continues it
// has its text and not its instructions. TestMixedClients holds the branches.
func TestResponses(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."), llmtest.Answer("Every ten years."), llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"What is a coppice?","instructions":"Speak of hazel.","metadata":{"a":"b"}}`)
	if first.Status != "completed" || first.Object != "response" || first.Output[0].Content[0].Text != "It is a wood." || first.Usage.Total == 0 || first.CreatedAt == 0 {
		t.Errorf("%+v", first)
	}
	check.That(t, strings.HasPrefix(a.prompt(), `{"content":"Speak of hazel.","role":"system"}`), "the model was given %s", a.prompt())
	second := a.create(`{"model":"wood","previous_response_id":"` + first.ID + `","input":"How often is it cut?"}`)
	if got := a.prompt(); strings.Contains(got, "hazel") || !strings.Contains(got, "It is a wood.") || !strings.HasSuffix(got, `{"role":"user","content":"How often is it cut?"}`) {
		t.Errorf("the model was given %s", got)
	}
	// A client that refers to what is stored item by item goes on where the item is.
	third := a.create(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},{"type":"item_reference","id":"` + first.Output[0].ID + `"},{"role":"user","content":"Really?"}]}`)
	check.Equal(t, "the model was given", a.prompt(), `{"role":"user","content":"What is a coppice?"} {"role":"assistant","content":"It is a wood."} {"role":"user","content":"Really?"}`)
	for _, r := range []response{first, second, third} {
		got, header := a.ask(200, "acme", "GET", "/responses/"+r.ID, "")
		check.Has(t, "the response", got, r.Output[0].ID)
		check.Equal(t, "its message", check.Must(named(header))(t), nodeOf(t, r.ID))
		check.Equal(t, "its conversation", nodeOf(t, r.ID).Conversation, nodeOf(t, first.ID).Conversation)
	}
	a.tells(200, "GET", "/responses/"+first.ID, "", `"instructions":"Speak of hazel."`, `"metadata":{"a":"b"}`, `"model":"wood"`)
}

// A stream, the same stream read again, and the response read later say the same.
func TestResponsesStream(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}
	a := newAPI(t, llmtest.Answer("It is a wood that is cut so that it grows again."), llmtest.CallTools(call), llmtest.Answer("Sunny."))
	streamed, header := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"What is a coppice?","stream":true}`)
	check.That(t, header.Get("Content-Type") == "text/event-stream" && header.Get("X-Coppice-Head-Id") != "", "%v", header)
	path := "/responses/" + finalID(t, streamed)
	check.Equal(t, "the end of the stream", final(a.tells(200, "GET", path+"?stream=true", "")), final(streamed))
	if rest, _ := a.ask(200, "acme", "GET", path+"?stream=true&starting_after=2", ""); strings.Contains(rest, `"sequence_number":2,`) || !strings.HasPrefix(rest, "event: response.content_part.added\n") || final(rest) != final(streamed) {
		t.Errorf("after event 2 comes %s", rest)
	}
	end, _ := a.ask(200, "acme", "GET", path+"?stream=true&starting_after=1000", "")
	check.That(t, strings.HasPrefix(end, "event: response.completed\n") && strings.HasSuffix(end, "data: [DONE]\n\n"), "after the end comes %s", end)
	a.tells(400, "GET", path+"?stream=true&starting_after=-1", "", `"param":"starting_after"`)
	check.Has(t, "what was streamed", final(streamed), a.tells(200, "GET", path, ""))

	const tools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	called, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"Weather in Rome?","stream":true,`+tools+`}`)
	check.Has(t, "the stream", called, "event: response.function_call_arguments.done\n", `"call_id":"call_1"`, `"arguments":"{\"city\":\"Rome\"}"`, "data: [DONE]\n\n")
	sunny := a.create(`{"model":"wood","previous_response_id":"` + finalID(t, called) + `",` + tools + `,"input":[{"type":"function_call_output","call_id":"call_1","output":"22 degrees"}]}`)
	check.Equal(t, "the answer", sunny.Output[0].Content[0].Text, "Sunny.")
}

// TestStreamOfARefusal holds that a provider that refuses at once is heard by its status and words,
// also in a stream, and that what it will always refuse leaves nothing.
func TestStreamOfARefusal(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, stream := range []string{"true", "false"} {
		for _, path := range []string{"/responses", "/chat/completions"} {
			for status, want := range map[int]int{400: 400, 429: 429, 500: 502} {
				_, before := a.everything()
				a.upstream.Script(llmtest.FailWith(llmtest.Failure{Status: status, Message: "boo", RetryAfter: 7 * time.Second}))
				got, header := a.ask(want, "acme", "POST", path, `{"model":"wood","store":true,"stream":`+stream+`,"input":"hi","messages":[{"role":"user","content":"hi"}]}`)
				if _, after := a.everything(); !strings.Contains(got, ": boo.") || status == 400 && after > before {
					t.Errorf("%s %d: %s; %d messages more", path, status, got, after-before)
				}
				if status == 429 && (header.Get("Retry-After") != "7" || header.Get("X-Should-Retry") != "" || !strings.Contains(got, `"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"`)) {
					t.Errorf("%s of a provider that is overrun: %v %s", path, header, got)
				}
			}
		}
	}
	a.upstream.Script(llmtest.Answer("one"), llmtest.Answer("two"), llmtest.Fail(400))
	a.complete("acme", chatBody(store, said("user", "hi")))
	two := a.complete("acme", chatBody(store, said("user", "hi"), said("assistant", "one"), said("user", "on")))
	a.ask(400, "acme", "POST", "/chat/completions", chatBody(store, said("user", "hi"), said("assistant", "one"), said("user", "aside")))
	check.Equal(t, "the head after a refusal", a.stored(uuid.MustParse(two.conversation)).HeadID.String(), two.head)
	a.upstream.Script(llmtest.FailMidway("It is a wood that is cut"), llmtest.FailMidway("It is a wood that is cut"))
	if got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody(`"stream":true,`, said("user", "hi"))); !strings.Contains(got, `data: {"error":{"message":`) || strings.Contains(got, "DONE") || !strings.Contains(got, "It is") {
		t.Errorf("a stream that fails midway: %s", got)
	}
	a.tells(200, "POST", "/responses", `{"model":"wood","input":"Fail.","stream":true}`, "event: response.failed\n", `"code":"server_error"`)
}

// TestReasoningItems holds that a reasoning item is streamed before the message, has
// the same id wherever it is read, and can be sent back. No model reads what is in it.
func TestReasoningItems(t *testing.T) {
	t.Parallel()
	const hm = "They ask for hazel, and for nothing else."
	a := newAPI(t, llmtest.Think(hm, "It is a wood."))
	a.upstream.Otherwise(llmtest.Answer("Every ten years."))
	streamed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"What is a coppice?","stream":true}`)
	r := responseIn(t, streamed)
	if len(r.Output) != 2 || r.Output[0].Type != "reasoning" || !strings.HasPrefix(r.Output[0].ID, "rs_") || r.Output[0].Content[0].Text != hm || r.Output[1].Content[0].Text != "It is a wood." {
		t.Fatalf("%s", streamed)
	}
	later, _ := a.ask(200, "acme", "GET", "/responses/"+r.ID, "")
	check.Has(t, "what was streamed", final(streamed), later)
	check.Has(t, "read later", later, `"output_tokens_details":{"reasoning_tokens":10}`)
	replayed := a.tells(200, "GET", "/responses/"+r.ID+"?stream=true", "")
	check.That(t, strings.Count(replayed, r.Output[0].ID) >= 4, "replayed: %s", replayed)
	// The branch goes on, by the response's id and with everything in full.
	_, raw := itemsIn(t, later)
	for _, rest := range []string{
		`"input":"How often?","previous_response_id":"` + r.ID + `"`,
		`"input":[{"role":"user","content":"What is a coppice?"},` + strings.Join(raw, ",") + `,{"role":"user","content":"Is it?"}]`,
	} {
		n := nodeOf(t, a.create(`{"model":"wood",`+rest+`}`).ID)
		check.Lacks(t, "the model reads", a.prompt(), "nothing else")
		var thoughts []string
		for m, err := range a.store.ForTenant("acme").Branch(t.Context(), n.Conversation, n.Node, 0) {
			check.NoError(t, err)
			if m.Reasoning != "" {
				thoughts = append(thoughts, string(m.Role)+" "+m.Reasoning)
			}
		}
		check.Equal(t, "thoughts", strings.Join(thoughts, "|"), string(tree.RoleAssistant)+" "+hm)
	}
}

// TestReasoningGivenBack holds that a model which wants its reasoning back gets it from
// the items of a client of which nothing is stored, with its calls alone.
func TestReasoningGivenBack(t *testing.T) {
	t.Parallel()
	for _, wants := range []bool{true, false} {
		a := setup{replies: reply.Config{WantsReasoning: func(string) bool { return wants }}, script: []llmtest.Behaviour{llmtest.Answer("ok")}}.serve(t)
		a.create(`{"model":"wood","store":false,"input":[{"role":"user","content":"Weather?"},{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},
			{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"Sun."}]}`)
		if got := a.prompt(); strings.Contains(got, `"reasoning_content":"Hm."`) != wants || strings.Count(got, "reasoning_content") > 1 {
			t.Errorf("wanted %t: the model was given %s", wants, got)
		}
	}
}
