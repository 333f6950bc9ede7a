package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// watchful looks at keys often.
func watchful(c *Config) { c.KeyCheck = 5 * time.Millisecond }

// TestRevokedKeyEndsItsStreams revokes a key amid replies: its streams end and say why, no further
// request passes, and the reply, which is the tenant's, goes on.
func TestRevokedKeyEndsItsStreams(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m), watchful)
	plant(t, a.store, "c")
	key, secret := a.newKey(tree.DefaultTenant)
	_, another := a.newKey(tree.DefaultTenant)

	r := ask(replyPathOf, `{"id":"{{x}}"}`)
	r.header = bearer(secret)
	asked := a.listen(t.Context(), r)
	events := request{method: "GET", path: fill(conversationPathOf + "/replies/{{x}}/events"), header: bearer(secret)}
	read := a.listen(t.Context(), events)
	events.header = bearer(another)
	others := a.listen(t.Context(), events)
	m.pieces <- "A wood "
	for _, l := range []*listener{asked, read, others} {
		l.until(7)
	}
	// One that waits for the whole answer.
	whole := make(chan response)
	go func() {
		r := ask(replyPathOf, `{"id":"{{x}}","stream":false}`)
		r.header = bearer(secret)
		whole <- a.send(r)
	}()
	check.Eventually(t, "the one that waits", func() bool {
		return strings.Contains(string(a.must(200, nil, request{method: "GET", path: "/metrics"}).body), "coppice_http_requests_in_flight 5\n")
	})

	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	for _, l := range []*listener{asked, read} {
		end := l.toEnd()
		var p Problem
		check.JSON(t, end.data, &p)
		check.That(t, end.name == "stream.closed" && end.id == "" && p.Code == CodeInvalidKey && p.Status == 401, "%+v", end)
	}
	res := <-whole
	check.That(t, res.StatusCode == 401 && a.problem(res).Code == CodeInvalidKey, "%d: %s", res.StatusCode, res.body)
	for _, r := range []request{{method: "GET", path: events.path}, {method: "GET", path: "/v1/conversations"}, ask(replyPathOf, "")} {
		r.header = bearer(secret)
		a.refused(401, CodeInvalidKey, r)
	}
	m.pieces <- "that grows again."
	close(m.pieces)
	check.Equal(t, "the end", others.toEnd().name, "reply.completed")
	check.Equal(t, "the text", others.text, "A wood that grows again.")
}

// TestRevokedKeyCutsFiles revokes a key amid an import.
func TestRevokedKeyCutsFiles(t *testing.T) {
	t.Parallel()
	a := newAPI(t, watchful)
	plant(t, a.store, "c")
	_, _ = a.newKey(tree.DefaultTenant)
	before := a.state()
	key, secret := a.newKey(tree.DefaultTenant)
	conn := a.dial() // http.Transport loses an answer that comes while it still sends
	chunk := func(text string) error {
		_, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(text), text)
		return err
	}
	_, err := io.WriteString(conn, "POST /v1/imports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nAuthorization: Bearer "+secret+"\r\n\r\n")
	check.NoError(t, err)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // the piece would take ten
	in := bufio.NewReader(conn)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 100 { // the key is sound
		t.Fatal(res, err)
	}
	check.NoError(t, chunk(`[{"role":"user","content":"x"}`))
	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	go func() { // as slowly as it may, until the server hangs up
		for chunk(" ") == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	res := check.Must(http.ReadResponse(in, nil))(t)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	check.That(t, err == nil && res.StatusCode == 401 && strings.Contains(string(answer), "invalid_key"), "%d, %v: %s", res.StatusCode, err, answer)
	check.Equal(t, "what is stored", a.state(), before)
}

var eventReads = []scenario{
	{name: "what changes, up to now", method: "GET", path: "/v1/events?follow=false", status: 200,
		want: []string{eventsHeaders, "Cache-Control: no-store", "X-Accel-Buffering: no", "stream.started\ndata: {\"resumed\":false}\n\n"}},
	{name: "what changes in a conversation, up to now", method: "GET", path: conversationPathOf + "/events?follow=false", status: 200, want: []string{eventsHeaders, "stream.started\ndata: {\"resumed\":false}\n\n"}},
	{name: "after an event that is long ago", method: "GET", path: "/v1/events?follow=false", header: map[string]string{"Last-Event-ID": "1"}, status: 200, want: []string{"{\"resumed\":false}\n\n"}},
	{name: "replies that run", method: "GET", path: conversationPathOf + "/replies", status: 200, want: []string{`{"data":[],"next_cursor":null}`}},
}

// TestEventsGoOn holds that a stream goes on after the last event of its reader: a conversation's
// with the next one, a tenant's with that one again, as its events are only about in order.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	var streams []*listener
	for _, path := range []string{"/v1/events", fill(conversationPathOf + "/events")} {
		first := a.listen(t.Context(), request{method: "GET", path: path})
		first.event(t)
		a.must(201, nil, request{method: "POST", path: fill(appendPath), body: fill(message(`"id":"{{m` + path + `}}",` + userMessage))})
		if e := first.event(t); e.name != "messages.appended" || !strings.Contains(e.data, fill(`"message_id":"{{m`+path+`}}","parent_id":"{{c.thanks}}","head_id":"{{m`+path+`}}","messages":1`)) {
			t.Errorf("%+v", e)
		}
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
		streams = append(streams, first)
	}
	a.must(204, nil, request{method: "DELETE", path: fill(conversationPathOf)})
	check.Equal(t, "the last event", streams[1].event(t).name, "conversation.deleted")
	_, err := readEvent(streams[1].body)
	check.That(t, err != nil, "the stream of a deleted conversation goes on")
}

// event reads an event that is no comment.
func (l *listener) event(t *testing.T) serverEvent {
	t.Helper()
	defer l.bounded().Stop()
	for {
		e, err := readEvent(l.body)
		check.Need(t, err == nil, "the stream ended with %v", err)
		if e.name != "comment" {
			conformsEvent(t, e)
			return e
		}
	}
}

// A stream of events says why the server ends it, and a key has so many.
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
	check.Has(t, "the detail", a.refused(429, CodeTooManyStreams, events).Detail, "2 streams of events")
	leave()
	check.Eventually(t, "room for one more", func() bool {
		return a.send(request{method: http.MethodHead, path: "/v1/events", header: bearer(secret)}).StatusCode == 200
	})
	last := a.listen(t.Context(), request{method: "GET", path: "/v1/events", header: bearer(other)})
	last.event(t)
	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	e := open[0].event(t)
	check.That(t, e.name == "stream.closed" && e.id == "" && strings.Contains(e.data, string(CodeInvalidKey)), "%+v", e)
	a.server.cfg.Changes.End() // as Shutdown does
	e = last.event(t)
	check.That(t, e.name == "stream.closed" && strings.Contains(e.data, string("shutting_down")), "%+v", e)
	a.refused(503, "shutting_down", request{method: "GET", path: "/v1/events", header: bearer(other)})
}
