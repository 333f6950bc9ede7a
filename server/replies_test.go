package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
)

func ask(path, body string) request {
	r := request{method: "POST", path: fill(path)}
	if body != "" {
		r.body = fill(body)
	}
	return r
}

// A model does all that models do, good and bad, asked for in a stream and whole.
func TestReplyFaults(t *testing.T) {
	t.Parallel()
	const text = "A wood that is cut <so> & grows again from the same roots."
	half := text[:len(text)/2]
	for name, test := range map[string]struct {
		does   llmtest.Behaviour
		end    string // event
		status int    // of the whole answer
		code   Code
		stored string
	}{
		"answers":             {llmtest.Answer(text), "reply.completed", 201, "", text},
		"says nothing":        {llmtest.Empty(), "reply.failed", 502, "model_bad_response", ""},
		"is unauthorized":     {llmtest.Fail(401), "reply.failed", 502, "model_not_authorized", ""},
		"refuses the request": {llmtest.Fail(400), "reply.failed", 502, "model_refused", ""},
		"is overrun":          {llmtest.Fail(429), "reply.failed", 503, "model_rate_limited", ""},
		"has no room":         {llmtest.TooLong(), "reply.failed", 502, "prompt_too_long", ""},
		"fails midway":        {llmtest.FailMidway(text), "reply.failed", 502, "model_unavailable", half},
		"hangs midway":        {llmtest.HangMidway(text), "reply.failed", 504, "model_timeout", half},
		"declines":            {llmtest.Refuse(text), "reply.completed", 201, "", ""},
		"never ends":          {llmtest.Endless(), "reply.failed", 502, "answer_too_long", "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t, test.does, test.does)
			a := newAPI(t, withModels(func(c *reply.Config) {
				if test.code == "model_timeout" {
					c.Timeout = 2 * time.Second
				}
			}, model(t, server)))
			plant(t, a.store, "c")
			l := a.listen(t.Context(), ask(replyPathOf, `{"id":"{{first}}"}`))
			end := l.toEnd()
			stored := l.stored()
			want := test.stored
			if want == "…" {
				want = l.text
			}
			check.That(t, end.name == test.end && stored.Content == want && l.text == want,
				"%s: stored is %.100q, streamed %.100q", end.name, stored.Content, l.text)
			if test.code != "" {
				var p Problem
				check.JSON(t, end.data, &p)
				check.Equal(t, "the problem", fmt.Sprint(p.Code, p.Status), fmt.Sprint(test.code, test.status))
				check.That(t, stored.Content == "" || stored.Metadata.Reply.Status == "failed" && stored.Metadata.Reply.Code == string(test.code),
					"metadata %+v", stored.Metadata)
			}
			res := a.must(test.status, nil, ask(replyPathOf, `{"stream":false}`))
			if test.code != "" {
				p := a.problem(res)
				check.Equal(t, "the whole answer's code", p.Code, test.code)
				check.Equal(t, "that it tells of what is stored", strings.Contains(p.Detail, "is stored"), test.stored != "")
			}
			check.That(t, res.StatusCode != 503 || res.Header.Get("Retry-After") != "", "no Retry-After")
			check.Lacks(t, "the log, beside the reply's line", a.log.String(), `"level":"ERROR"`)
		})
	}
}

// Connections are cut at random, often amid an event. No text is lost or doubled.
func TestResume(t *testing.T) {
	t.Parallel()
	odd := "a\nb\rc\r\nd\u2028e\u2029f\u0085g\x00h\"\\<&>é🌳 data: x\n\nid: 7\n\n"
	var pieces []string
	for i := range 200 {
		pieces = append(pieces, fmt.Sprint(i, " "), odd[:1+i%7])
	}
	pieces = append(pieces, odd)
	want := strings.ReplaceAll(strings.Join(pieces, ""), "\x00", "")
	server := llmtest.NewServer(t)
	server.Otherwise(llmtest.Slow(100*time.Microsecond, llmtest.Chunks(pieces...)))
	a := newAPI(t, withModels(nil, model(t, server)))
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			a := a.with(t)
			// In a conversation of its own: an answer says how many siblings it has.
			conversation := fmt.Sprint("c", round)
			plant(t, a.store, conversation)
			own := strings.NewReplacer("{{c", "{{"+conversation)
			random := rand.New(rand.NewPCG(1, uint64(round)))
			r := ask(own.Replace(replyPathOf), fmt.Sprintf(`{"id":"{{round %d}}"}`, round))
			last, text := 0, ""
			for cuts := 0; ; cuts++ {
				ctx, cut := context.WithCancel(t.Context())
				l := a.listen(ctx, r)
				l.last = last
				left := random.IntN(4000)
				l.body.Reset(io.LimitReader(l.res.Body, int64(left)))
				for l.end == nil {
					before := l.last
					if _, err := l.next(); err != nil {
						break
					}
					check.That(t, l.last <= before+1, "event %d came after event %d", l.last, before)
				}
				cut()
				text += l.text
				last = l.last
				if l.end != nil {
					check.Equal(t, "what is stored", l.stored().Content, want)
					check.Equal(t, "the text", text, want)
					return
				}
				check.Need(t, !t.Failed() && cuts != 10_000, "after %d cuts and %d events the reply has not ended", cuts, last)
				r = request{method: "GET", path: fill(own.Replace(conversationPathOf) + fmt.Sprintf("/replies/{{round %d}}/events", round))}
				if last > 0 {
					r.header = map[string]string{"Last-Event-ID": fmt.Sprint(last)}
				}
			}
		})
	}
}

// An answer is stopped before anything of it came, of a request that waits for the whole.
func TestStopReply(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withModels(nil, paced{make(chan string)}))
	plant(t, a.store, "c")
	answered := make(chan response)
	go func() { answered <- a.send(ask(replyPathOf, `{"id":"{{blank}}","stream":false}`)) }()
	blank := request{method: "DELETE", path: fill(conversationPathOf + "/replies/{{blank}}")}
	want := fill(`{"data":[{"message_id":"{{blank}}","parent_id":"{{c.thanks}}","model":`)
	check.Eventually(t, "the reply in the list of those that run", func() bool {
		return strings.HasPrefix(string(a.send(request{method: "GET", path: fill(conversationPathOf + "/replies")}).body), want)
	})
	check.Equal(t, "the answer", string(a.must(200, nil, blank).body), `{"status":"stopped","message":null}`)
	res := <-answered
	check.That(t, res.StatusCode == 409 && a.problem(res).Code == CodeReplyStopped, "%d: %s", res.StatusCode, res.body)
}

// TestRecallWithinAReply holds that a reply's events tell of each message between the head and the
// answer, and that the route's context is what the model read.
func TestRecallWithinAReply(t *testing.T) {
	t.Parallel()
	search := llmtest.ToolCall{ID: "r", Name: "recall", Arguments: `{"query":"why is a coppice cut?"}`}
	upstream := llmtest.NewServer(t, llmtest.SayAndCall("Let me look.", search), llmtest.Answer("So that it grows again."))
	a := newAPI(t, withModels(nil, model(t, upstream)))
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, `{"id":"{{first}}","recall":true}`))
	var told []string // roles
	for l.end == nil {
		e := check.Must(l.next())(t)
		if e.name == "reply.message" {
			var data struct {
				Message struct{ Role string }
			}
			check.NoError(t, json.Unmarshal([]byte(e.data), &data))
			told = append(told, data.Message.Role)
		}
	}
	check.That(t, fmt.Sprint(told) == "[assistant tool]" && l.text == "Let me look.\n\nSo that it grows again." && l.stored().Content == l.text,
		"told of %v, and %q", told, l.text)
	check.Has(t, "the end", l.end.data, `"recalled":2`, fill(`"head_id":"{{c.thanks}}"`), `"usage":{"prompt_tokens":14`)
	// What the model read first is the context that the route gives for recall.
	first := upstream.Requests()[0]
	read := a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/{{c.thanks}}/context?recall=true")}).body
	if messages := fmt.Sprintf("%s", first.Messages); !strings.Contains(string(read), strings.ReplaceAll(strings.Trim(messages, "[]"), "} {", "},{")) || !strings.Contains(messages, "function recall") {
		t.Errorf("the model read %s, the context is %s", messages, read)
	}
	check.Lacks(t, "the context", string(a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/{{c.thanks}}/context")}).body), "function recall")
	if found := string(upstream.Requests()[1].Body); !strings.Contains(found, "why \\u003ccut\\u003e it") && !strings.Contains(found, "why <cut> it") || strings.Contains(found, "No idea") || strings.Contains(found, "hazel, ash, oak") {
		t.Errorf("the model read %s", found)
	}
}

const (
	replyPathOf   = conversationPathOf + "/branches/{{c.thanks}}/replies"
	userMessage   = `"role":"user","content":"And pollarding?"`
	eventsHeaders = "Content-Type: text/event-stream"
)

var replyReads = []scenario{
	{name: "events of a stored answer", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", status: 200,
		want: []string{eventsHeaders, "Cache-Control: no-store", "X-Accel-Buffering: no", "2147483647\nevent", `{"message":{"id":"{{c.answer}}"`, `"usage":{"prompt_tokens":0,"completion_tokens":0},"finish_reason":null}` + "\n\n"}},
	{name: "events of a stored answer, read on", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "17"}, status: 200, want: []string{"reply.completed"}},
	{name: "no more events", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "2147483647"}, status: 204},
	{name: "stop what has ended", method: "DELETE", path: conversationPathOf + "/replies/{{c.answer}}", status: 200, want: []string{`{"status":"completed","message":{"id":"{{c.answer}}"`}},
}

var replyWrites = []scenario{
	{name: "answer with no body", method: "POST", path: replyPathOf, status: 201, want: []string{`{"id":"`, `"parent_id":"{{c.thanks}}"`, "Content-Type: application/json"}},
	{name: "answer in a stream", method: "POST", path: replyPathOf, body: `{"stream":true}`, status: 200,
		want: []string{eventsHeaders, "Cache-Control: no-store", "X-Accel-Buffering: no", "Location: " + conversationPathOf + "/replies/", "1\nevent", `{"message_id":"`, `"parent_id":"{{c.thanks}}","model":"offline","context":{"complete":true`, "reply.delta", "reply.completed", "“Thank you, hazel!”"}},
	{name: "answer whole", method: "POST", path: replyPathOf, body: `{"stream":false,"model":"offline","temperature":1,"max_output_tokens":50,"tools":[{"type":"function"}],"tool_choice":"auto"}`, status: 201,
		want: []string{`"parent_id":"{{c.thanks}}"`, `"role":"assistant"`, `"metadata":{"reply":{"status":"completed","model":"offline","finish_reason":"stop"}}`, "Location: " + conversationPathOf + "/messages/"}},
	{name: "send", method: "POST", path: conversationPathOf + "/branches/active/replies", body: `{"stream":true,"id":"{{a}}","message":{"id":"{{m}}",` + userMessage + `,"metadata":{"a":1},"pinned":true}}`, status: 200,
		want: []string{`{"message_id":"{{a}}","parent_id":"{{m}}"`, `"message":{"id":"{{m}}","conversation_id":"{{c}}","parent_id":"{{c.thanks}}"`, "“And pollarding?”", `"pinned":true`}},
	{name: "edit and send", method: "POST", path: replyPathOf, body: `{"stream":false,"message":{"parent_id":"{{c.answer}}",` + userMessage + `}}`, status: 201, want: []string{`"depth":4`, `"siblings":{"index":1,"count":1}`}},
	{name: "send as a root", method: "POST", path: replyPathOf, body: `{"stream":true,"message":{"parent_id":null,` + userMessage + `},"move_head":false}`, status: 200, want: []string{`"parent_id":null`, `"siblings":{"index":2,"count":2}`}},
	{name: "send several messages", method: "POST", path: conversationPathOf + "/branches/active/replies", body: `{"stream":true,"id":"{{a}}","instructions":"Be brief.","messages":[{"id":"{{m}}","role":"user","content":"And hazel?"},{"id":"{{n}}",` + userMessage + `,"pinned":true}]}`, status: 200,
		want: []string{`{"message_id":"{{a}}","parent_id":"{{n}}"`, `"message":{"id":"{{n}}","conversation_id":"{{c}}","parent_id":"{{m}}"`, `"messages":[{"id":"{{m}}","conversation_id":"{{c}}","parent_id":"{{c.thanks}}"`, "“And pollarding?”"}},
	{name: "answer with options", method: "POST", path: replyPathOf, body: `{"stream":false,"top_p":0.5,"presence_penalty":-2,"frequency_penalty":2,"seed":7,"stop":["\n","END"],"response_format":{"type":"json_schema","json_schema":{"name":"tree","schema":{"type":"object"},"strict":true}},"parallel_tool_calls":false,"reasoning_effort":"low","service_tier":"flex","user":"u-1"}`, status: 201, want: []string{`"parent_id":"{{c.thanks}}"`}},
	{name: "answer twice", method: "POST", path: replyPathOf, body: `{"n":2,"id":"{{a}}","message":{"id":"{{m}}",` + userMessage + `}}`, status: 201,
		want: []string{`{"data":[{"message_id":"{{a}}","model":"offline","status":"completed","usage":{`, `"error":null,"message":{"id":"{{a}}"`, `"parent_id":"{{m}}"`, `"siblings":{"index":2,"count":2}`}},
	{name: "answer by two models in a stream", method: "POST", path: replyPathOf, body: `{"stream":true,"models":["offline","offline"],"id":"{{a}}","message":{"id":"{{m}}",` + userMessage + `}}`, status: 200,
		want: []string{eventsHeaders, `{"message_id":"{{a}}","parent_id":"{{m}}","model":"offline"`, `{"message_id":"{{a}}","content":"`, `{"message_id":"{{a}}","message":{"id":"{{a}}"`, `"siblings":{"index":2,"count":2}`}},
	{name: "answer what is there", method: "POST", path: conversationPathOf + "/branches/{{c.question}}/replies", body: `{"id":"{{c.answer}}","stream":false}`, status: 200, want: []string{`{"id":"{{c.answer}}"`}},
	{name: "answer what is there in a stream", method: "POST", path: conversationPathOf + "/branches/{{c.question}}/replies", body: `{"id":"{{c.answer}}","stream":true}`, status: 200, want: []string{"2147483647\nevent"}},
}

var badReplies = []badInput{
	{name: "answer an answer", method: "POST", path: conversationPathOf + "/branches/{{c.answer}}/replies", body: `{}`, status: 400, code: "head_not_answerable", field: "head_id", detail: []string{"an assistant message"}},
	{name: "answer by an unknown model", method: "POST", path: replyPathOf, body: `{"model":"gpt-9"}`, status: 400, code: CodeUnknownModel, field: "model", detail: []string{`"offline"`}},
	{name: "answer by two models, one unknown", method: "POST", path: replyPathOf, body: `{"models":["offline","gpt-9"]}`, status: 400, code: CodeUnknownModel, field: "models[1]"},
	{name: "answer by models beside a model", method: "POST", path: replyPathOf, body: `{"models":["offline","offline"],"model":"offline"}`, status: 400, code: CodeInvalidParameter, field: "models"},
	{name: "answer by one of models", method: "POST", path: replyPathOf, body: `{"models":["offline"]}`, status: 400, code: CodeInvalidParameter, field: "models"},
	{name: "answer nine times", method: "POST", path: replyPathOf, body: `{"n":9}`, status: 400, code: CodeInvalidParameter, field: "n"},
	{name: "compare with nothing", method: "GET", path: conversationPathOf + "/compare?left=active", status: 400, code: CodeInvalidParameter, field: "right"},
	{name: "compare with an absent message", method: "GET", path: conversationPathOf + "/compare?left=active&right={{absent}}", status: 404, code: "message_not_found", field: "right"},
	{name: "answer with the id of another answer", method: "POST", path: replyPathOf, body: `{"id":"{{c.answer}}"}`, status: 409, code: CodeIDConflict, field: "id"},
	{name: "answer with a key that is taken", method: "POST", path: replyPathOf, body: `{}`, header: map[string]string{"Idempotency-Key": "taken"}, status: 409, code: CodeIDConflict, field: "Idempotency-Key"},
	{name: "send with a key that is taken", method: "POST", path: replyPathOf, body: `{"message":{` + userMessage + `}}`, header: map[string]string{"Idempotency-Key": "taken"}, status: 409, code: CodeIDConflict, field: "Idempotency-Key"},
	{name: "answer with an empty key", method: "POST", path: replyPathOf, body: `{}`, header: map[string]string{"Content-Type": "application/json", "Idempotency-Key": strings.Repeat("k", 256)}, status: 400, code: CodeInvalidIdempotencyKey, field: "Idempotency-Key"},
	{name: "answer with a member too many", method: "POST", path: replyPathOf, body: `{"prompt":[]}`, status: 400, code: CodeUnknownField, field: "prompt", detail: []string{"max_output_tokens, message, messages, model"}},
	{name: "recall beside a tool of its name", method: "POST", path: replyPathOf, body: `{"recall":true,"tools":[{"type":"function","function":{"name":"recall"}}]}`, status: 400, code: CodeInvalidParameter, field: "tools", detail: []string{"Give yours another name"}},
	{name: "messages beside a message", method: "POST", path: replyPathOf, body: `{"messages":[{` + userMessage + `}],"message":{` + userMessage + `}}`, status: 400, code: CodeInvalidParameter, field: "messages"},
	{name: "no messages", method: "POST", path: replyPathOf, body: `{"messages":[]}`, status: 400, code: "empty_chain", field: "messages"},
	{name: "a message of several no object", method: "POST", path: replyPathOf, body: `{"messages":[{` + userMessage + `},"x"]}`, status: 400, code: CodeWrongType, field: "messages[1]"},
	{name: "a message of several with a member too many", method: "POST", path: replyPathOf, body: `{"messages":[{` + userMessage + `},{"parent_id":null,` + userMessage + `}]}`, status: 400, code: CodeUnknownField, field: "messages[1].parent_id"},
	{name: "a message of several of no role", method: "POST", path: replyPathOf, body: `{"messages":[{` + userMessage + `},{"content":"x"}]}`, status: 400, code: CodeMissingField, field: "messages[1].role"},
	{name: "a message of several of a wrong role", method: "POST", path: replyPathOf, body: `{"messages":[{"role":"human","content":"x"},{` + userMessage + `}]}`, status: 400, code: "invalid_role", field: "messages[0].role"},
	{name: "the last of several an assistant's", method: "POST", path: replyPathOf, body: `{"messages":[{` + userMessage + `},{"role":"assistant","content":"x"}]}`, status: 400, code: "head_not_answerable", field: "messages[1].role"},
	{name: "two messages of one id", method: "POST", path: replyPathOf, body: `{"messages":[{"id":"{{m}}",` + userMessage + `},{"id":"{{m}}",` + userMessage + `}]}`, status: 400, code: "duplicate_id", field: "messages[1].id"},
	{name: "one of a list under an absent message", method: "POST", path: replyPathOf, body: `{"parent_id":"{{absent}}","messages":[{` + userMessage + `}]}`, status: 404, code: "parent_not_found", field: "parent_id"},
	{name: "several under an absent head", method: "POST", path: conversationPathOf + "/branches/{{absent}}/replies", body: `{"messages":[{` + userMessage + `},{` + userMessage + `}]}`, status: 404, code: "parent_not_found", field: "head_id"},
	{name: "a parent of no messages", method: "POST", path: replyPathOf, body: `{"parent_id":null}`, status: 400, code: CodeInvalidParameter, field: "parent_id"},
	{name: "a parent beside a message", method: "POST", path: replyPathOf, body: `{"parent_id":null,"message":{` + userMessage + `}}`, status: 400, code: CodeInvalidParameter, field: "parent_id", detail: []string{"message.parent_id"}},
	{name: "one of several with an id that is taken, and a key", method: "POST", path: replyPathOf, body: `{"messages":[{"id":"{{c.question}}",` + userMessage + `},{` + userMessage + `}]}`, header: map[string]string{"Idempotency-Key": "fresh"}, status: 409, code: CodeIDConflict, field: "messages[0].id"},
	{name: "instructions beyond the window", method: "POST", path: replyPathOf, body: `{"instructions":"` + strings.Repeat("hazel ", 130_000) + `"}`, status: 400, code: CodeInvalidParameter, field: "instructions"},
	{name: "message with a member too many", method: "POST", path: replyPathOf, body: `{"message":{"move_head":true,` + userMessage + `}}`, status: 400, code: CodeUnknownField, field: "message.move_head"},
	{name: "message of no role", method: "POST", path: replyPathOf, body: `{"message":{"content":"x"}}`, status: 400, code: CodeMissingField, field: "message.role"},
	{name: "message of an assistant", method: "POST", path: replyPathOf, body: `{"message":{"role":"assistant","content":"x"}}`, status: 400, code: "head_not_answerable", field: "message.role"},
	{name: "message under an absent head", method: "POST", path: conversationPathOf + "/branches/{{absent}}/replies", body: `{"message":{` + userMessage + `}}`, status: 404, code: "parent_not_found", field: "head_id"},
	{name: "message with an id that is taken", method: "POST", path: replyPathOf, body: `{"message":{"id":"{{c.question}}",` + userMessage + `}}`, status: 409, code: CodeIDConflict, field: "message.id"},
	{name: "tools no array", method: "POST", path: replyPathOf, body: `{"tools":{}}`, status: 400, code: CodeWrongType, field: "tools"},
	{name: "tool no object", method: "POST", path: replyPathOf, body: `{"tools":[{},5]}`, status: 400, code: CodeWrongType, field: "tools[1]"},
	{name: "tool choice a number", method: "POST", path: replyPathOf, body: `{"tool_choice":1}`, status: 400, code: CodeWrongType, field: "tool_choice"},
	{name: "temperature over 2", method: "POST", path: replyPathOf, body: `{"temperature":2.1}`, status: 400, code: CodeInvalidParameter, field: "temperature"},
	{name: "top_p over 1", method: "POST", path: replyPathOf, body: `{"top_p":1.1}`, status: 400, code: CodeInvalidParameter, field: "top_p"},
	{name: "presence penalty below -2", method: "POST", path: replyPathOf, body: `{"presence_penalty":-2.1}`, status: 400, code: CodeInvalidParameter, field: "presence_penalty"},
	{name: "stop with a number", method: "POST", path: replyPathOf, body: `{"stop":["x",1]}`, status: 400, code: CodeWrongType, field: "stop[1]"},
	{name: "stop at nothing", method: "POST", path: replyPathOf, body: `{"stop":""}`, status: 400, code: CodeInvalidParameter, field: "stop"},
	{name: "format no object", method: "POST", path: replyPathOf, body: `{"response_format":"json_object"}`, status: 400, code: CodeInvalidParameter, field: "response_format"},
	{name: "format of no type", method: "POST", path: replyPathOf, body: `{"response_format":{"type":"xml"}}`, status: 400, code: CodeInvalidParameter, field: "response_format.type"},
	{name: "format without its schema", method: "POST", path: replyPathOf, body: `{"response_format":{"type":"json_schema"}}`, status: 400, code: CodeInvalidParameter, field: "response_format.json_schema"},
	{name: "effort no word", method: "POST", path: replyPathOf, body: `{"reasoning_effort":"very high"}`, status: 400, code: CodeInvalidParameter, field: "reasoning_effort"},
	{name: "no output", method: "POST", path: replyPathOf, body: `{"max_output_tokens":0}`, status: 400, code: CodeInvalidParameter, field: "max_output_tokens"},
	{name: "events of a question", method: "GET", path: conversationPathOf + "/replies/{{c.question}}/events", status: 404, code: "reply_not_found"},
	{name: "events after no id", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "x"}, status: 400, code: CodeInvalidParameter, field: "Last-Event-ID"},
	{name: "stop nothing", method: "DELETE", path: conversationPathOf + "/replies/{{absent}}", status: 404, code: "reply_not_found"},
}
