package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// Nothing is recorded unless client or operator say so, and side requests are kept out.
func TestWhatIsRecorded(t *testing.T) {
	t.Parallel()
	side := openai.Recognition{SideModels: []string{"gpt-5"}, SidePrompts: []string{"### Task:"}}
	recording := side
	recording.Record = true
	hi, title := said("user", "hi"), said("user", "### Task: find a title")
	quiet := newAPIWith(t, side)
	quiet.upstream.Otherwise(llmtest.Answer("ok"))
	eager := quiet.again(func(s *setup) { s.recognition = recording })
	for i, test := range []struct {
		a        *api
		body     string
		header   string
		recorded bool
	}{
		{quiet, chatBody("", hi), "", false},
		{quiet, chatBody(store, hi), "", true},
		{quiet, chatBody(store, hi), "false", false},
		{quiet, chatBody("", hi), "true", true},
		{quiet, chatBody(store, title), "", false},
		{eager, chatBody("", hi), "", true},
		{eager, chatBody(`"store":false,`, hi), "", true},
		{eager, chatBody("", hi), "false", false},
		{eager, chatBody("", title), "", false},
		{eager, chatBody("", title, said("assistant", "What for?"), hi), "", true},
		{eager, strings.Replace(chatBody("", hi), "wood", "gpt-5", 1), "", false},
		{eager, chatBody("", hi, said("user", strings.Repeat("x", tree.MaxBodyBytes))), "", false}, // which can't be
	} {
		_, before := quiet.everything()
		c := test.a.complete("acme", test.body, "X-Coppice-Record", test.header)
		if _, after := quiet.everything(); (after > before) != test.recorded || (c.conversation != "") != test.recorded {
			t.Errorf("case %d: %d messages more, %+v", i, after-before, c)
		}
		status, _, _ := quiet.send("acme", "GET", "/chat/completions/"+c.ID, "")
		check.Equal(t, fmt.Sprintf("case %d: that it can be read", i), status == 200, test.recorded)
	}
}

// The model reads the branch's context where the operator says so, or the messages don't fit.
func TestManagedContext(t *testing.T) {
	t.Parallel()
	odd := `{ "role":"user", "content":"What is a coppice?" }`
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer("A wood."))
	managed := a.again(func(s *setup) { s.recognition.Managed = true })
	managed.complete("acme", chatBody(store, said("user", "What is a coppice?")))
	managed.complete("acme", chatBody(store, odd))
	check.Equal(t, "the model was given, as it is stored", a.prompt(), said("user", "What is a coppice?"))
	messages := []string{odd}
	for i := range 10 {
		messages = append(messages, said("assistant", fmt.Sprint("Answer ", i)), said("user", strings.Repeat("word ", 20_000)))
	}
	c := a.complete("acme", chatBody(store, messages...))
	got := a.prompt()
	check.That(t, len(got) <= 700_000 && !strings.Contains(got, odd) && c.conversation != "", "the model was given %d bytes", len(got))
}

// A session is one conversation whatever it says. Two users or tenants never meet.
func TestSessions(t *testing.T) {
	t.Parallel()
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.Answer("ok")}, 30)...)
	seen := map[string]string{}
	hi := []string{said("system", "It is sunny."), said("user", "hi")}
	for _, test := range []struct {
		session, tenant, members string
		messages                 []string
		headers                  []string
	}{
		{"opening", "acme", "", hi, nil},
		{"opening", "acme", "", append(hi[:2:2], said("assistant", "ok"), said("user", "more")), nil},
		{"other opening", "acme", "", []string{said("system", "It is raining."), hi[1]}, nil},
		{"a clock", "acme", "", []string{said("system", "It is Friday, 27 Nov 2026, 11:59 AM."), said("user", "hi at 12")}, nil},
		{"a clock", "acme", "", []string{said("system", "It is Saturday, 28 Nov 2026, 0:01 pm."), said("user", "hi at 12"), said("assistant", "ok"), said("user", "more")}, nil},
		{"a clock", "acme", "", []string{said("system", "It is Sun, November 29th, 2026, 11:59:07.12 a.m."), said("user", "hi at 12")}, nil},
		{"a machine's clock", "acme", "", []string{said("system", "It is 2026-11-29T08:00:00Z."), hi[1]}, nil},
		{"a machine's clock", "acme", "", []string{said("system", "It is 2026-11-30T23:59:59.999+01:00."), hi[1]}, nil},
		{"a customer", "acme", "", []string{said("system", "This is customer 1001."), hi[1]}, nil},
		{"another customer", "acme", "", []string{said("system", "This is customer 1002."), hi[1]}, nil},
		{"a user's clock", "acme", "", []string{said("system", "It is Saturday, 28 Nov 2026, 0:01 pm."), said("user", "hi at 13")}, nil},
		{"other tenant", "other", "", hi, nil},
		{"header", "acme", "", hi, []string{"X-Coppice-Session", "1"}},
		{"header", "acme", `"prompt_cache_key":"9",`, []string{said("system", "It is raining."), hi[1]}, []string{"X-Coppice-Session", "1"}},
		{"header 2", "acme", "", hi, []string{"X-Coppice-Session", "2"}},
		{"header of the other tenant", "other", "", hi, []string{"X-Coppice-Session", "1"}},
		{"opening", "acme", `"prompt_cache_key":"1",`, hi, nil}, // which two chats of an app may share
		{"metadata", "acme", `"metadata":{"session_id":"1"},`, hi, nil},
		{"litellm in the body", "acme", `"litellm_session_id":"1",`, hi, nil},
		{"user", "acme", `"user":"x",`, hi, nil},
		{"user", "acme", `"safety_identifier":"x","user":"z",`, hi, nil},
		{"user's other opening", "acme", `"user":"x",`, []string{said("user", "bye")}, nil},
		{"other user", "acme", `"user":"y",`, hi, nil},
	} {
		c := a.complete(test.tenant, chatBody(store+test.members, test.messages...), test.headers...)
		for session, id := range seen {
			check.Equal(t, fmt.Sprintf("that %s and %s are in one conversation", test.session, session), id == c.conversation, session == test.session)
		}
		seen[test.session] = c.conversation
		n, err := a.store.ForTenant("other").Conversation(t.Context(), uuid.MustParse(c.conversation))
		check.That(t, test.tenant != "acme" || errors.Is(err, fault.NotFound), "another tenant reads %+v, %v", n, err)
	}
	roots, err := a.store.ForTenant("acme").Children(t.Context(), uuid.MustParse(seen["header"]), uuid.Nil, tree.Paging{})
	check.That(t, err == nil && len(roots.Data) == 2, "a session whose system prompt changed has %d roots, want 2; %v", len(roots.Data), err)
}

// TestCompactedByTheClient holds that of a history which a client doesn't ask to store the
// model reads what the client sent, also where it has the id of an item and lacks others.
func TestCompactedByTheClient(t *testing.T) {
	t.Parallel()
	a := newAPI(t, answersOf(3)...)
	input := func(kept string, more ...string) response {
		status, got, _ := a.send("acme", "POST", "/responses", `{"model":"wood","store":false,"input":[`+kept+strings.Join(more, ",")+`]}`, "X-Coppice-Record", "true", "Session-Id", "1")
		check.Need(t, status == 200, "%v", got)
		return responseIn(t, got)
	}
	input(said("user", "One?"))
	kept := said("user", "One?") + "," + said("user", "All so far.") + "," + said("user", "Two?")
	second := input(kept)
	last := input(kept, `,{"type":"message","role":"assistant","id":"`+second.Output[0].ID+`","content":`+string(check.Must(json.Marshal(second.Output[0].Content[0].Text))(t))+`}`, said("user", "Three?"))
	a.grew(last, 7, 7)
	check.Lacks(t, "the model was given", a.prompt(), "Answer 0.")
}

// TestResultsOfASession holds that a session may send results alone: they go below their calls, in
// order where they have no ids. Instructions that the branch lacks are the model's, too.
func TestResultsOfASession(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		if strings.Contains(string(req.Messages[len(req.Messages)-1]), "warm") {
			return llmtest.CallTools(llmtest.ToolCall{ID: "z", Name: "look", Arguments: "{}"}, llmtest.ToolCall{ID: "a", Name: "look", Arguments: "{}"})
		}
		return llmtest.Answer("12 and 13 degrees.")
	}))
	const first, second = `{"role":"tool","content":"12","tool_call_id":"z"}`, `{"role":"tool","content":"13","tool_call_id":"a"}`
	for name, test := range map[string]struct{ path, body string }{
		"ids":          {"/chat/completions", chatBody(store, said("system", "Be brief."), first, second)},
		"no ids":       {"/chat/completions", chatBody(store, `{"role":"user","content":[{"functionResponse":{"name":"look","response":{"result":"12"}}},{"functionResponse":{"name":"look","response":{"result":"13"}}}]}`)},
		"of Responses": {"/responses", `{"model":"wood","input":[{"type":"function_call_output","call_id":"z","output":"12"},{"type":"function_call_output","call_id":"a","output":"13"}]}`},
	} {
		asked := a.complete("acme", chatBody(store, said("user", "How warm is it?")), "X-Coppice-Session", name)
		status, got, header := a.send("acme", "POST", test.path, test.body, "X-Coppice-Session", name)
		n, _ := named(header)
		check.That(t, status == 200 && n.Conversation.String() == asked.conversation && a.treeSize(n.Conversation) == 5,
			"%s: %d %s", name, status, got)
		if prompt := a.prompt(); !strings.HasSuffix(prompt, first+" "+second) || !strings.Contains(prompt, "How warm is it?") || strings.Contains(prompt, "Be brief.") != (name == "ids") {
			t.Errorf("%s: the model was given %s", name, prompt)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("ok"), llmtest.Answer("ok"))
	a.tells(200, "GET", "/models", "", `{"id":"wood",`, `{"id":"gpt-5","object":"model","created":`)
	for _, name := range []string{"wood", "gpt-5"} {
		got := a.tells(200, "GET", "/models/"+name, "")
		check.That(t, strings.HasPrefix(got, `{"id":"`+name+`","object":"model","created":`), "%s", got)
	}
	check.Equal(t, "the model", a.complete("acme", strings.Replace(chatBody("", said("user", "hi")), "wood", "gpt-5", 1)).Model, "gpt-5")
	check.Equal(t, "status", a.create(`{"model":"gpt-5","input":"hi"}`).Status, "completed")
	for _, req := range a.upstream.Requests() {
		check.Equal(t, "the upstream was asked for", req.Model, "wood")
	}
}

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
	check.Need(a.t, status == http.StatusOK, "%s: %d %s", body, status, got)
	check.JSON(a.t, got, &c)
	check.Need(a.t, len(c.Choices) == 1, "%s", got)
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
	n, err := wire.ParseCompletionID(first.ID)
	check.That(t, err == nil && n.Conversation.String() == first.conversation && n.Node.String() == first.head, "%s, %+v: %v", first.ID, first, err)
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

// A message that says nothing goes to the model, where nothing is recorded.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Record: true})
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	for empty, recorded := range map[string]int{said("system", ""): 0, said("user", ""): 0, `{"role":"assistant","content":null}`: 0, `{"role":"assistant"}`: 0, `{"role":"user","content":[{"type":"text","text":""}]}`: 1} {
		messages := []string{empty, said("user", "Hi")}
		before := len(a.listed("acme"))
		a.tells(200, "POST", "/chat/completions", chatBody("", messages...))
		check.Equal(t, empty+": the model was given", a.prompt(), strings.Join(messages, " "))
		check.Equal(t, empty+": conversations", len(a.listed("acme"))-before, recorded)
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
