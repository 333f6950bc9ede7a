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
			check.Lacks(t, "the log, beside the reply's line", a.log.String(), `"level":"ERROR"`)
		})
	}
}

// TestResume cuts connections at random, often in the middle of an event, and
// reads on. No text is lost or doubled.
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

// TestStopReply stops an answer before anything of it came, of a request that waits
// for the whole.
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
	if res := <-answered; res.StatusCode != 409 || a.problem(res).Code != CodeReplyStopped {
		t.Errorf("%d: %s", res.StatusCode, res.body)
	}
}

// TestRecallWithinAReply holds that the events of a reply tell of each message
// that stands between the head and the answer, and that the context of the route is what
// the model read.
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
	if fmt.Sprint(told) != "[assistant tool]" || l.text != "Let me look.\n\nSo that it grows again." || l.stored().Content != l.text {
		t.Errorf("told of %v, and %q", told, l.text)
	}
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
