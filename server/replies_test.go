package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm"
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

// TestReplyFaults has a model do all that models do, good and bad, asked for in
// a stream and whole.
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
		"says nothing":        {llmtest.Empty(), "reply.failed", 502, CodeModelBadResponse, ""},
		"is cut off":          {llmtest.Truncated(text), "reply.completed", 201, "", text},
		"is unauthorized":     {llmtest.Fail(401), "reply.failed", 502, CodeModelNotAuthorized, ""},
		"refuses the request": {llmtest.Fail(400), "reply.failed", 502, CodeModelRefused, ""},
		"is overrun":          {llmtest.Fail(429), "reply.failed", 503, CodeModelRateLimited, ""},
		"is broken":           {llmtest.Fail(500), "reply.failed", 502, CodeModelUnavailable, ""},
		"has no room":         {llmtest.TooLong(), "reply.failed", 502, CodePromptTooLong, ""},
		"fails midway":        {llmtest.FailMidway(text), "reply.failed", 502, CodeModelUnavailable, half},
		"hangs":               {llmtest.Hang(), "reply.failed", 504, CodeModelTimeout, ""},
		"hangs midway":        {llmtest.HangMidway(text), "reply.failed", 504, CodeModelTimeout, half},
		"cuts the connection": {llmtest.CutConnection(), "reply.failed", 502, CodeModelUnavailable, ""},
		"cuts it midway":      {llmtest.CutMidway(text), "reply.failed", 502, CodeModelUnavailable, half},
		"ends midway":         {llmtest.EndMidway(text), "reply.failed", 502, CodeModelUnavailable, half},
		"sends no body":       {llmtest.NoBody(), "reply.failed", 502, CodeModelUnavailable, ""},
		"sends no choices":    {llmtest.NoChoices(), "reply.failed", 502, CodeModelBadResponse, ""},
		"sends broken JSON":   {llmtest.InvalidJSON(), "reply.failed", 502, CodeModelBadResponse, ""},
		"sends a web page":    {llmtest.WrongContentType(), "reply.failed", 502, CodeModelBadResponse, ""},
		"hangs at the end":    {llmtest.HangAtEnd(text), "reply.completed", 201, "", text},
		"declines":            {llmtest.Refuse(text), "reply.completed", 201, "", ""},
		"is silent for ever":  {llmtest.EndlessSilence(), "reply.failed", 502, CodeAnswerTooLong, ""},
		"never ends":          {llmtest.Endless(), "reply.failed", 502, CodeAnswerTooLong, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t, test.does, test.does)
			a := newAPI(t, withModels(func(c *reply.Config) {
				if test.code == CodeModelTimeout {
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
			if end.name != test.end || stored.Content != want || l.text != want {
				t.Errorf("%s: stored is %.100q, streamed %.100q", end.name, stored.Content, l.text)
			}
			if test.code != "" {
				var p Problem
				if err := json.Unmarshal([]byte(end.data), &p); err != nil || p.Code != test.code || p.Status != test.status {
					t.Errorf("%v: %s", err, end.data)
				}
				if stored.Content != "" && (stored.Metadata.Reply.Status != "failed" || stored.Metadata.Reply.Code != string(test.code)) {
					t.Errorf("metadata %+v", stored.Metadata)
				}
			}
			res := a.must(test.status, nil, ask(replyPathOf, `{"stream":false}`))
			if test.code != "" {
				p := a.problem(res)
				if p.Code != test.code || strings.Contains(p.Detail, "is stored") != (test.stored != "") {
					t.Errorf("%s", res.body)
				}
			}
			if res.StatusCode == 503 && res.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			// The stored answers are siblings, read again by their ids.
			if test.stored != "" {
				var list struct{ Data []struct{ ID string } }
				a.must(200, &list, request{method: "GET", path: fill(conversationPathOf + "/messages/{{c.thanks}}/children")})
				if len(list.Data) != 2 {
					t.Errorf("%d answers", len(list.Data))
				}
			}
			if strings.Contains(a.log.String(), "same roots") || strings.Contains(a.log.String(), "hazel") {
				t.Errorf("the log has text: %s", a.log)
			}
		})
	}
}

// TestResume cuts connections at random, often in the middle of an event, and
// reads on. No text is lost or doubled.
func TestResume(t *testing.T) {
	t.Parallel()
	odd := "a\nb\rc\r\nd\u2028e\u2029f\u0085g\x00h\"\\<&>é🌳 data: x\n\nid: 7\n\n"
	var pieces []string
	for i := range 400 {
		pieces = append(pieces, fmt.Sprint(i, " "), odd[:1+i%7])
	}
	pieces = append(pieces, odd)
	want := strings.ReplaceAll(strings.Join(pieces, ""), "\x00", "")
	server := llmtest.NewServer(t)
	server.Otherwise(llmtest.Slow(100*time.Microsecond, llmtest.Chunks(pieces...)))
	a := newAPI(t, withModels(nil, model(t, server)))
	for round := range 12 {
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
				left := random.IntN(8000)
				l.body.Reset(io.LimitReader(l.res.Body, int64(left)))
				for l.end == nil {
					before := l.last
					if _, err := l.next(); err != nil {
						break
					}
					if l.last > before+1 {
						t.Errorf("event %d came after event %d", l.last, before)
					}
				}
				cut()
				text += l.text
				last = l.last
				if l.end != nil {
					if m := l.stored(); m.Content != want || text != want {
						t.Errorf("after %d cuts the text has %d bytes, stored are %d, want %d", cuts, len(text), len(m.Content), len(want))
					}
					return
				}
				if t.Failed() || cuts == 10_000 {
					t.Fatalf("after %d cuts and %d events the reply has not ended", cuts, last)
				}
				r = request{method: "GET", path: fill(own.Replace(conversationPathOf) + fmt.Sprintf("/replies/{{round %d}}/events", round))}
				if last > 0 {
					r.header = map[string]string{"Last-Event-ID": fmt.Sprint(last)}
				}
			}
		})
	}
}

// TestStopReply stops an answer amid its stream.
func TestStopReply(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m))
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, ""))
	m.pieces <- "A wood "
	l.until(7)
	path := strings.TrimSuffix(l.res.Header.Get("Location"), "/events")
	for range 2 { // the second finds it ended
		var stopped struct {
			Status  string
			Message struct{ Content string }
		}
		a.must(200, &stopped, request{method: "DELETE", path: path})
		if stopped.Status != "stopped" || stopped.Message.Content != "A wood " {
			t.Errorf("%+v", stopped)
		}
	}
	if end := l.toEnd(); end.name != "reply.stopped" || l.stored().Metadata.Reply.Status != "stopped" {
		t.Errorf("%+v", end)
	}

	// Before anything came, of a request that waits for the whole.
	answered := make(chan response)
	go func() { answered <- a.send(ask(replyPathOf, `{"id":"{{blank}}","stream":false}`)) }()
	blank := request{method: "DELETE", path: fill(conversationPathOf + "/replies/{{blank}}")}
	eventually(t, "the reply", func() bool { return a.server.cfg.Replies.Stats().Running == 1 })
	if res := a.must(200, nil, blank); string(res.body) != `{"status":"stopped","message":null}` {
		t.Errorf("%s", res.body)
	}
	if res := <-answered; res.StatusCode != 409 || a.problem(res).Code != CodeReplyStopped {
		t.Errorf("%d: %s", res.StatusCode, res.body)
	}
}

// TestReplyIdempotency sends a request again while its reply runs and after.
func TestReplyIdempotency(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m))
	plant(t, a.store, "c")
	r := ask(conversationPathOf+"/branches/active/replies", `{"message":{`+userMessage+`}}`)
	r.header = map[string]string{"Idempotency-Key": "once"}
	first := a.listen(t.Context(), r)
	m.pieces <- "Higher "
	first.until(7)
	second := a.listen(t.Context(), r)
	second.until(7)
	m.pieces <- "up."
	close(m.pieces)
	if x, y := first.toEnd(), second.toEnd(); x != y || first.text != "Higher up." || second.text != first.text {
		t.Errorf("%+v\n%+v", x, y)
	}
	third := a.listen(t.Context(), r)
	if end := third.toEnd(); end != *first.end || third.text != first.text {
		t.Errorf("%+v", end)
	}
	r.body = fill(`{"stream":false,"message":{` + userMessage + `}}`)
	res := a.must(200, nil, r)
	if !strings.Contains(first.end.data, string(res.body)) {
		t.Errorf("%s", res.body)
	}
	r.body = fill(`{"message":{"role":"user","content":"Something else"}}`)
	a.refused(409, CodeIDConflict, r)
}

// TestToolRound has a model call a tool, whose result the client sends with the
// next request.
func TestToolRound(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t,
		llmtest.CallTools(llmtest.ToolCall{ID: "x", Name: "look_up", Arguments: `{"word":"ash"}`}, llmtest.ToolCall{ID: "y", Name: "look_up", Arguments: `{}`}),
		llmtest.Answer("A tree."))
	a := newAPI(t, withModels(nil, model(t, server)))
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, `{"id":"{{calls}}","tools":[{"type":"function","function":{"name":"look_up"}}],"tool_choice":"required"}`))
	if end := l.toEnd(); !strings.Contains(end.data, `"finish_reason":"tool_calls"`) || !strings.Contains(end.data, `"arguments":"{\"word\":\"ash\"}"`) {
		t.Errorf("%+v", end)
	}
	path := conversationPathOf + "/branches/{{calls}}/replies"
	p := a.refused(400, CodeOpenToolCalls, ask(path, `{"message":{"role":"tool","tool_call_id":"x","content":"a tree"}}`))
	if !strings.Contains(p.Detail, `"y"`) {
		t.Error(p.Detail)
	}
	a.must(201, nil, request{method: "POST", path: fill(appendPath), body: fill(`{"id":"{{x}}","parent_id":"{{calls}}","role":"tool","tool_call_id":"x","content":"a tree"}`)})
	a.refused(400, CodeOpenToolCalls, ask(conversationPathOf+"/branches/{{x}}/replies", ``))
	l = a.listen(t.Context(), ask(conversationPathOf+"/branches/{{x}}/replies", `{"message":{"role":"tool","tool_call_id":"y","content":""}}`))
	if l.toEnd(); l.text != "A tree." {
		t.Errorf("%q", l.text)
	}
	if body := string(server.Requests()[0].Body); !strings.Contains(body, `"tool_choice":"required"`) || !strings.Contains(body, `"tools":[{"type":"function"`) {
		t.Error(body)
	}
}

func TestTooManyReplies(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(func(c *reply.Config) { c.MaxPerTenant = 1 }, m))
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, ""))
	before := a.state()
	res := a.must(429, nil, ask(replyPathOf, `{"message":{`+userMessage+`}}`))
	if p := a.problem(res); p.Code != CodeTooManyReplies || res.Header.Get("Retry-After") == "" || a.state() != before {
		t.Errorf("%s", res.body)
	}
	close(m.pieces)
	l.toEnd()
	if err := a.server.cfg.Replies.Close(t.Context()); err != nil {
		t.Error(err)
	}
	a.refused(503, CodeShuttingDown, ask(replyPathOf, ""))
}

// TestReplyThatPanics shows nothing of a bug to the client, and the log names it
// by the request.
func TestReplyThatPanics(t *testing.T) {
	t.Parallel()
	a := newAPI(t, withModels(nil, &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) { panic("a bug") }}))
	plant(t, a.store, "c")
	r := ask(replyPathOf, "")
	r.header = map[string]string{"X-Request-Id": "trace-7"}
	end := a.listen(t.Context(), r).toEnd()
	if end.name != "reply.failed" || !strings.Contains(end.data, `"code":"internal_error"`) || strings.Contains(end.data, "a bug") {
		t.Errorf("%+v", end)
	}
	eventually(t, "the log", func() bool {
		for _, line := range a.lines() {
			if e, ok := line["error"].(string); ok && line["request_id"] == "trace-7" && line["level"] == "ERROR" && strings.Contains(e, "a bug") {
				return true
			}
		}
		return false
	})
}

// TestHeadOfEvents doesn't wait for a reply.
func TestHeadOfEvents(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m))
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, ""))
	res := a.must(200, nil, request{method: http.MethodHead, path: l.res.Header.Get("Location")})
	if res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", res.Header)
	}
	close(m.pieces)
	l.toEnd()
}

// FuzzReplyRequest gives a request any bytes. What isn't taken must be a
// problem of the client's.
func FuzzReplyRequest(f *testing.F) {
	for _, s := range replyWrites {
		f.Add([]byte(fill(s.body)))
	}
	for _, b := range badReplies {
		f.Add([]byte(fill(b.body)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var body newReply
		err := tryBind(&body, data)
		if err == nil {
			r := requestFor(nil)
			r.route = newRoute(new(API), Route{Pattern: "/{conversation_id}/{head_id}", Header: idempotencyKey})
			r.values = [maxIDs]string{named("c").String(), "active"}
			_, _, err = r.newReply(&body)
		}
		if err != nil {
			if p := toProblem(err); p.Status >= 500 || !p.Code.Valid() {
				t.Fatalf("%s: %v", p.Code, err)
			}
		} else if !json.Valid(data) {
			t.Fatalf("%q was taken", data)
		}
	})
}
