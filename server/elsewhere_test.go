package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/reply"
)

// twoServers are two servers on one database, whose replies m gives.
func twoServers(t *testing.T, m paced) (a, b *testAPI) {
	t.Helper()
	pool := dbtest.New(t)
	as := func(name string) func(*Config) {
		return withModels(func(c *reply.Config) { c.ServerID, c.SaveEvery, c.Lease = name, 20*time.Millisecond, time.Hour }, m)
	}
	a, b = newAPIOn(t, pool, as("a")), newAPIOn(t, pool, as("b"))
	plant(t, a.store, "c")
	return a, b
}

// untilSaved waits until other servers can know the reply whose events are here.
func (a *testAPI) untilSaved(events string) {
	a.t.Helper()
	parts := strings.Split(events, "/") // /v1/conversations/{id}/replies/{id}/events
	conversation, message := uuid.MustParse(parts[3]), uuid.MustParse(parts[5])
	check.Eventually(a.t, "saved events", func() bool {
		_, saves, err := a.store.Replies().Log(a.t.Context(), conversation, message, 0)
		check.NoError(a.t, err)
		return len(saves) > 0
	})
}

// TestRepliesOfAnotherServer holds that a reply is read, read on and stopped on
// any server, by the ids that its own server gives.
func TestRepliesOfAnotherServer(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a, b := twoServers(t, m)
	first := a.listen(t.Context(), ask(replyPathOf, `{"message":{`+userMessage+`}}`))
	events := first.res.Header.Get("Location")
	m.pieces <- "Higher "
	first.until(7)
	a.untilSaved(events)
	// The connection breaks, and the balancer finds another server.
	ctx, leave := context.WithCancel(t.Context())
	on := b.listen(ctx, request{method: "GET", path: events, header: map[string]string{"Last-Event-ID": fmt.Sprint(first.last)}})
	on.last = first.last
	m.pieces <- "and higher"
	on.until(10)
	if on.text != "and higher" {
		t.Errorf("read on from event %d: %q", first.last, on.text)
	}
	leave()
	first.until(17)
	if first.text != "Higher and higher" {
		t.Errorf("%q", first.text)
	}
	// All of it, as its own server tells it.
	whole := b.listen(t.Context(), request{method: "GET", path: events})
	own := a.listen(t.Context(), request{method: "GET", path: events})
	for range 2 {
		x, err := whole.next()
		y, ownErr := own.next()
		if err != nil || ownErr != nil || x != y {
			t.Errorf("one server gives %+v, %v, and another %+v, %v", x, err, y, ownErr)
		}
	}
	var stopped struct {
		Status  string
		Message struct{ Content string }
	}
	for _, server := range []*testAPI{b, a, b} {
		server.must(200, &stopped, request{method: "DELETE", path: strings.TrimSuffix(events, "/events")})
		if stopped.Status != "stopped" || stopped.Message.Content != "Higher and higher" {
			t.Errorf("%+v", stopped)
		}
	}
	for _, l := range []*listener{whole, own, first} {
		if end := l.toEnd(); end.name != "reply.stopped" || l.stored().Content != "Higher and higher" {
			t.Errorf("%+v", end)
		}
	}
	if whole.text != own.text {
		t.Errorf("%q and %q", whole.text, own.text)
	}
	if last := b.send(request{method: "GET", path: events, header: map[string]string{"Last-Event-ID": fmt.Sprint(whole.last)}}); last.StatusCode != 204 {
		t.Errorf("after the end: %d", last.StatusCode)
	}
}

// TestIdempotencyOnTwoServers sends one request to two servers while its reply
// runs, and after.
func TestIdempotencyOnTwoServers(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a, b := twoServers(t, m)
	r := ask(conversationPathOf+"/branches/active/replies", `{"message":{`+userMessage+`}}`)
	r.header = map[string]string{"Idempotency-Key": "once"}
	first := a.listen(t.Context(), r)
	m.pieces <- "Higher "
	first.until(7)
	second, beside := b.listen(t.Context(), r), a.listen(t.Context(), r)
	second.until(7)
	if first.res.Header.Get("Location") != second.res.Header.Get("Location") {
		t.Error("two replies were made")
	}
	other := r
	other.body = fill(`{"message":{"role":"user","content":"Something else"}}`)
	b.refused(409, CodeIDConflict, other)
	m.pieces <- "up."
	close(m.pieces)
	var ends []string
	for _, l := range []*listener{first, second, beside} {
		var end struct{ Message json.RawMessage }
		if err := json.Unmarshal([]byte(l.toEnd().data), &end); err != nil || l.text != "Higher up." {
			t.Errorf("%q, %v", l.text, err)
		}
		ends = append(ends, string(end.Message))
	}
	if ends[0] != ends[1] || ends[0] != ends[2] {
		t.Errorf("%s", ends)
	}
	r.body = fill(`{"stream":false,"message":{` + userMessage + `}}`)
	if res := b.must(200, nil, r); string(res.body) != ends[0] {
		t.Errorf("%s", res.body)
	}
}
