package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

var eventReads = []scenario{
	{name: "what changes, up to now", method: "GET", path: "/v1/events?follow=false", status: 200,
		want: []string{eventsHeaders, "Cache-Control: no-store", "X-Accel-Buffering: no", "stream.started\ndata: {\"resumed\":false}\n\n"}},
	{name: "what changes in a conversation, up to now", method: "GET", path: conversationPathOf + "/events?follow=false", status: 200, want: []string{eventsHeaders, "stream.started\ndata: {\"resumed\":false}\n\n"}},
	{name: "after an event that is long ago", method: "GET", path: "/v1/events?follow=false", header: map[string]string{"Last-Event-ID": "1"}, status: 200, want: []string{"{\"resumed\":false}\n\n"}},
	{name: "replies that run", method: "GET", path: conversationPathOf + "/replies", status: 200, want: []string{`{"data":[],"next_cursor":null}`}},
}

// TestEventsOfAnotherServer reads on one server what is changed by another.
func TestEventsOfAnotherServer(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(8))
	a, b := newAPIOn(t, pool), newAPIOn(t, pool)
	plant(t, a.store, "c")
	plant(t, a.store.ForTenant("other"), "e")
	streams := []*listener{
		a.listen(t.Context(), request{method: "GET", path: "/v1/events"}),
		a.listen(t.Context(), request{method: "GET", path: fill(conversationPathOf + "/events")}),
	}
	for _, l := range streams {
		if e := l.event(t); e.name != "stream.started" || e.data != `{"resumed":false}` {
			t.Fatalf("%+v", e)
		}
	}
	check.Must(b.store.ForTenant("other").Append(t.Context(), named("e"), named("e.third"), tree.NewMessage{Message: chat.Read([]byte(`{"role":"user","content":"secret"}`))}))(t)
	b.must(201, nil, request{method: "POST", path: fill(conversationPathOf + "/messages"), body: fill(`{"id":"{{m}}","parent_id":"{{c.thanks}}",` + userMessage + `}`)})
	b.must(200, nil, request{method: "PATCH", path: fill(conversationPathOf), body: `{"title":"Another"}`})
	b.must(204, nil, request{method: "DELETE", path: fill(conversationPathOf)})
	for _, l := range streams {
		var last []string
		for _, want := range []string{"messages.appended", "conversation.updated", "conversation.deleted"} {
			e := l.event(t)
			last = append(last, e.id)
			if e.name != want || !strings.HasPrefix(e.data, fill(`{"conversation_id":"{{c}}","sequence":`)) {
				t.Errorf("%+v, not %s", e, want)
			}
			if want == "messages.appended" && !strings.Contains(e.data, fill(`"message_id":"{{m}}","parent_id":"{{c.thanks}}","head_id":"{{m}}","messages":1`)) {
				t.Errorf("%+v", e)
			}
		}
		if len(last) != 3 {
			t.Errorf("%v", last)
		}
	}
	if e, err := readEvent(streams[1].body); err == nil {
		t.Errorf("the stream of a deleted conversation goes on with %+v", e)
	}
}

// TestEventsGoOn holds that a stream which names the last event that its reader has
// goes on after it: of a conversation with the next one, and of a tenant with that one
// again, as its events are only about in order.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	for _, path := range []string{"/v1/events", fill(conversationPathOf + "/events")} {
		first := a.listen(t.Context(), request{method: "GET", path: path})
		first.event(t)
		var ids []string
		for _, title := range []string{"One", "Two", "Three"} {
			a.must(200, nil, request{method: "PATCH", path: fill(conversationPathOf), body: `{"title":"` + title + `"}`})
			ids = append(ids, first.event(t).id)
		}
		res := a.send(request{method: "GET", path: path + "?follow=false", header: map[string]string{"Last-Event-ID": ids[1]}})
		text := string(res.body)
		if again := strings.Contains(text, "id: "+ids[1]+"\nevent: conversation.updated"); !strings.Contains(text, `"resumed":true`) ||
			!strings.Contains(text, "id: "+ids[2]+"\nevent: conversation.updated") || again != (path == "/v1/events") {
			t.Errorf("%s after %s of %v: %s", path, ids[1], ids, text)
		}
	}
}

// event reads an event that is no comment.
func (l *listener) event(t *testing.T) serverEvent {
	t.Helper()
	defer l.bounded().Stop()
	for {
		e, err := readEvent(l.body)
		if err != nil {
			t.Fatalf("the stream ended with %v", err)
		}
		if e.name != "comment" {
			conformsEvent(t, e)
			return e
		}
	}
}

// TestEventsEnd holds that a stream of events says why the server ends it, and that
// a key has so many.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	a := newAPI(t, watchful, func(c *Config) { c.MaxStreams = 2 })
	key, secret := a.newKey(tree.DefaultTenant)
	_, other := a.newKey(tree.DefaultTenant)
	events := request{method: "GET", path: "/v1/events", header: bearer(secret)}
	ctx, leave := context.WithCancel(t.Context())
	open := []*listener{a.listen(t.Context(), events), a.listen(ctx, events)}
	for _, l := range open {
		l.event(t)
	}
	if p := a.refused(429, CodeTooManyStreams, events); !strings.Contains(p.Detail, "2 streams of events") {
		t.Error(p.Detail)
	}
	leave()
	check.Eventually(t, "room for one more", func() bool {
		return a.send(request{method: http.MethodHead, path: "/v1/events", header: bearer(secret)}).StatusCode == 200
	})
	last := a.listen(t.Context(), request{method: "GET", path: "/v1/events", header: bearer(other)})
	last.event(t)
	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	if e := open[0].event(t); e.name != "stream.closed" || e.id != "" || !strings.Contains(e.data, string(CodeInvalidKey)) {
		t.Errorf("%+v", e)
	}
	a.server.cfg.Changes.End() // as Shutdown does
	if e := last.event(t); e.name != "stream.closed" || !strings.Contains(e.data, string("shutting_down")) {
		t.Errorf("%+v", e)
	}
	a.refused(503, "shutting_down", request{method: "GET", path: "/v1/events", header: bearer(other)})
}

// TestRunningReplies lists a reply amid its answer, on its own server at once and on
// another one once it was saved, which then gives its events, too.
func TestRunningReplies(t *testing.T) {
	t.Parallel()
	m, pool := paced{make(chan string)}, dbtest.New(t)
	as := func(name string) *testAPI {
		return newAPIOn(t, pool, withModels(func(c *reply.Config) { c.ServerID, c.SaveEvery, c.Lease = name, 20*time.Millisecond, time.Hour }, m))
	}
	a, b := as("a"), as("b")
	plant(t, a.store, "c")
	l := a.listen(t.Context(), ask(replyPathOf, `{"id":"{{x}}"}`))
	m.pieces <- "A wood "
	l.until(7)
	want := fill(`{"data":[{"message_id":"{{x}}","parent_id":"{{c.thanks}}","model":`)
	for i, s := range []*testAPI{a, b} {
		check.Eventually(t, fmt.Sprintf("the reply on server %d", i), func() bool {
			res := s.send(request{method: "GET", path: fill(conversationPathOf + "/replies")})
			return strings.HasPrefix(string(res.body), want)
		})
	}
	elsewhere := b.listen(t.Context(), request{method: "GET", path: l.res.Header.Get("Location")})
	elsewhere.until(7)
	close(m.pieces)
	if end := elsewhere.toEnd(); end != l.toEnd() || elsewhere.text != "A wood " {
		t.Errorf("the other server gives %q and %+v", elsewhere.text, end)
	}
	for i, s := range []*testAPI{a, b} {
		check.Eventually(t, fmt.Sprintf("no reply on server %d", i), func() bool {
			return strings.HasPrefix(string(s.send(request{method: "GET", path: fill(conversationPathOf + "/replies")}).body), `{"data":[]`)
		})
	}
}
