package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// limited has the store refuse what goes beyond limits.
func limited(l tree.Limits) func(*Config) {
	return func(c *Config) { tree.WithLimits(l)(c.Store) }
}

// TestLimitsAreToldClearly fills a tenant. What is refused says so, no model is asked for an answer
// that can't be stored, and everything else goes on.
func TestLimitsAreToldClearly(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewServer(t, llmtest.Answer("A wood."), llmtest.Answer("Another."))
	a := newAPI(t, limited(tree.Limits{Conversations: 2, MessagesPerConversation: 9}), withModels(nil, model(t, fake)))
	plant(t, a.store, "c") // 8 messages
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{d}}"}`)})
	create := request{method: "POST", path: "/v1/conversations", body: `{}`}
	fork := request{method: "POST", path: fill(conversationPathOf + "/messages/{{c.third}}/fork")}
	for _, r := range []request{create, fork} {
		check.Has(t, "the detail", a.refused(403, "too_many_conversations", r).Detail, "Delete one")
	}
	var report importReport
	a.must(200, &report, request{method: "POST", path: "/v1/imports", header: octets, body: `[{"role":"user","content":"x"}]`})
	check.That(t, report.Added == 0 && len(report.Notes) == 1 && strings.Contains(report.Notes[0].Detail, "which is the most"), "%+v", report)
	a.must(200, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{d}}"}`)})

	send := ask(replyPathOf, `{"message":{"id":"{{m}}",`+userMessage+`}}`)
	a.refused(403, "too_many_messages", send) // there is room for the message, and none for its answer
	check.Equal(t, "the end of one more", a.listen(t.Context(), ask(replyPathOf, `{}`)).toEnd().name, "reply.completed")
	for _, r := range []request{
		send, ask(replyPathOf, `{}`),
		{method: "POST", path: fill(appendPath), body: fill(message(`"role":"user","content":"x"`))},
		{method: "POST", path: fill(appendPath), body: chainOf(1)},
	} {
		check.Has(t, "the detail", a.refused(403, "too_many_messages", r).Detail, "Prune")
	}
	check.Equal(t, "requests to the model", len(fake.Requests()), 1)
	// A message that was stored before its answer failed takes no second place.
	a.must(200, nil, request{method: "DELETE", path: fill(conversationPathOf + "/messages/{{c.call}}")})
	a.must(201, nil, request{method: "POST", path: fill(appendPath), body: fill(message(`"id":"{{m}}",` + userMessage))})
	send.body = strings.TrimSuffix(send.body.(string), "}") + `,"stream":false}`
	a.must(201, nil, send)
	a.must(204, nil, request{method: "DELETE", path: "/v1/conversations/" + named("d").String()})
	a.must(201, nil, create)
}

// TestRequestsTakeTurns has a tenant hold all that it may of the database's connections. Its next
// request waits; those that need none don't, nor does another tenant's.
func TestRequestsTakeTurns(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, tenant := range []string{"busy", "other"} {
		plant(t, a.store.ForTenant(tenant), tenant)
	}
	_, busy := a.newKey("busy")
	_, other := a.newKey("other")
	var notes struct{ Part json.RawMessage }
	a.must(201, &notes, request{method: "POST", path: "/v1/attachments", body: "# Hazel & ash", header: map[string]string{"Authorization": "Bearer " + busy, "Content-Type": "text/plain"}})
	conversation := "/v1/conversations/" + named("busy").String()
	a.must(201, nil, request{method: "POST", path: conversation + "/messages", header: bearer(busy), body: `{"role":"user","content":[` + string(notes.Part) + `]}`})
	for name, test := range map[string]struct {
		of    *limiter[string]
		waits []request
		free  []request
	}{
		"reads": {a.server.limits.reads, []request{get(conversation + "/tree"), get(conversation + "/export"), get(conversation + "/branches/active/context")},
			[]request{get(conversation + "/branches/active/context?attachments=names"), get(conversation + "/branches/active/transcript"), get("/v1/search?query=hazel")}},
		"searches": {a.server.limits.searches, []request{get("/v1/search?query=hazel"), get("/v1/conversations?query=hazel")},
			[]request{get("/v1/conversations"), get(conversation + "/tree")}},
		"imports": {a.server.limits.imports, []request{{method: "POST", path: "/v1/imports", body: `[{"role":"user","content":"x"}]`}}, []request{get(conversation + "/export")}},
	} {
		leave, ok := test.of.hold(t.Context(), "busy", test.of.perKey, 0)
		check.Need(t, ok, "%s: some are under way", name)
		held := test.of.underWay()
		answered := make(chan int, len(test.waits))
		for _, r := range test.waits {
			check.Equal(t, name+": that another tenant waits for "+r.path, a.send(r.as(other)).StatusCode == 429, false)
			go func() { answered <- a.send(r.as(busy)).StatusCode }()
		}
		check.Eventually(t, "requests that wait for "+name, func() bool { return test.of.underWay() == held+len(test.waits) })
		for _, r := range test.free {
			a.must(200, nil, r.as(busy))
		}
		s := &Server{limits: a.server.limits} // where a request may take no time
		if _, err := (&Request{Request: httptest.NewRequest("GET", "/", nil), server: s, who: access.Principal{Tenant: "busy"}}).await(t.Context(), test.of, "busy", name); err == nil || toProblem(err).Code != CodeTooManyStreams {
			t.Errorf("%s: one too many gets %v", name, err)
		}
		leave()
		for range test.waits {
			check.Equal(t, name+": one that waited gets", <-answered, 200)
		}
	}
}

// TestStreamsOfAKeyAreLimited opens as many streams of replies as a key may have. One more is
// refused and changes nothing, another key's isn't, and one that ends makes room.
func TestStreamsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m), func(c *Config) { c.MaxStreams = 2 })
	plant(t, a.store.ForTenant("own"), "c")
	_, one := a.newKey("own")
	_, another := a.newKey("own")
	events := request{method: "GET", path: fill(conversationPathOf + "/replies/{{x}}/events")}
	open := []*listener{a.listen(t.Context(), ask(replyPathOf, `{"id":"{{x}}"}`).as(one)), a.listen(t.Context(), events.as(one))}
	before := a.state()
	for _, r := range []request{events, ask(replyPathOf, `{"message":{"role":"user","content":"x"}}`), ask(replyPathOf, `{"stream":false}`)} {
		check.Has(t, "the detail", a.refused(429, CodeTooManyStreams, r.as(one)).Detail, "2 streams")
	}
	check.Equal(t, "what is stored", a.state(), before)
	open = append(open, a.listen(t.Context(), events.as(another)))
	open[1].res.Body.Close()
	check.Eventually(t, "room for one more", func() bool {
		return a.send(request{method: http.MethodHead, path: events.path}.as(one)).StatusCode == 200
	})
	open[1] = a.listen(t.Context(), events.as(one))
	close(m.pieces)
	for _, l := range open {
		l.toEnd()
	}
	check.Eventually(t, "no stream that counts", func() bool { return a.server.limits.replies.underWay() == 0 })
}

// held returns how many units a key holds, and how many requests wait.
func (l *limiter[K]) heldBy(key K) (units, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.byKey[key].units), len(l.waiting)
}

const mebibyte = 1 << 20

// TestStalledBodiesAreBounded has a tenant begin many bodies that lack a byte. They hold the tenant's
// half, and the others aren't read; a small body and another tenant's don't wait.
func TestStalledBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const bodies = 10
	a := newAPI(t, func(c *Config) { c.MaxBytesInFlight = 4 * mebibyte })
	plant(t, a.store.ForTenant("busy"), "c")
	plant(t, a.store.ForTenant("other"), "other")
	_, busy := a.newKey("busy")
	_, other := a.newKey("other")
	body := `{"role":"user","content":"` + strings.Repeat("a ", mebibyte/2-100)
	body += strings.Repeat("a", mebibyte-len(body)-2) + `"}`
	answered := make(chan int, bodies)
	var rest [bodies]*io.PipeWriter
	for i := range rest {
		from, to := io.Pipe()
		rest[i] = to
		req := a.newRequest(request{method: "POST", path: fill(appendPath), body: body}.as(busy))
		req.Body = from
		go func() { answered <- a.statusOf(req) }()
		go func() { _, _ = io.WriteString(to, body[:len(body)-1]) }()
	}
	limit := a.server.limits.bodies
	check.Eventually(t, "all but two bodies that wait", func() bool { _, waiting := limit.heldBy("busy"); return waiting == bodies-2 })
	held, _ := limit.heldBy("busy")
	check.Equal(t, "bytes held", held, 2*mebibyte)
	a.must(201, nil, request{method: "POST", path: fill(appendPath), header: bearer(busy), body: fill(message(userMessage))})
	a.must(201, nil, request{method: "POST", path: "/v1/conversations/" + named("other").String() + "/messages", header: bearer(other), body: body})
	for _, to := range rest {
		go func() {
			_, _ = io.WriteString(to, body[len(body)-1:])
			to.Close()
		}()
	}
	for range rest {
		check.Equal(t, "a body that waited gets", <-answered, 201)
	}
	check.Eventually(t, "no bytes that are held", func() bool { return limit.underWay() == 0 })
}

// A slowAnswer is a mebibyte whose client doesn't read it for a time.
type slowAnswer struct{ writing, read chan struct{} }

func (slowAnswer) Size() int { return mebibyte }

func (a slowAnswer) Write(w http.ResponseWriter) error {
	a.writing <- struct{}{}
	<-a.read
	w.WriteHeader(http.StatusOK)
	return nil
}

// TestUnreadAnswersAreBounded has a tenant ask for large answers that nobody reads. Few more are made
// than its half holds, the others wait, and another tenant's is sent at once.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const requests, sent, made = 10, 2, 4
	var answers atomic.Int64
	slow := slowAnswer{make(chan struct{}, requests+1), make(chan struct{})}
	a := newAPI(t, func(c *Config) {
		c.MaxBytesInFlight, c.MaxReads = 2*sent*mebibyte, made/2
		c.APIs = []API{{Prefix: "/slow/", Refuse: refuseNatively, Routes: []Route{{Method: "GET", Pattern: "/slow/answer", Handle: func(*Request) (Answer, error) {
			answers.Add(1)
			return slow, nil
		}}}}}
	})
	_, busy := a.newKey("busy")
	_, other := a.newKey("other")
	answered := make(chan int, requests+1)
	ask := func(key string) { answered <- a.statusOf(a.newRequest(get("/slow/answer").as(key))) }
	for range requests {
		go ask(busy)
	}
	for range sent {
		<-slow.writing
	}
	check.Eventually(t, "requests that wait to be answered", func() bool {
		_, waiting := a.server.limits.making.heldBy("busy")
		_, ready := a.server.limits.answers.heldBy("busy")
		return waiting == requests-sent-made && ready == made
	})
	check.Equal(t, "answers that are sent, or wait for it", answers.Load(), sent+made)
	go ask(other)
	<-slow.writing
	close(slow.read)
	for range requests + 1 {
		check.Equal(t, "status", <-answered, 200)
	}
}
