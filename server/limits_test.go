package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
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

// TestLimitsAreToldClearly fills a tenant, and holds that what is refused says
// so, that no model is asked for an answer that can't be stored, and that
// everything else goes on.
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
	if report.Added != 0 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Detail, "which is the most") {
		t.Errorf("%+v", report)
	}
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

// TestRequestsTakeTurns has a tenant hold all that it may of what takes connections to
// the database. A request of the tenant's that needs some waits for it; others, and
// another tenant's, don't.
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
	get := func(path string) request { return request{method: "GET", path: path} }
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
		if !ok {
			t.Fatalf("%s: some are under way", name)
		}
		held := test.of.underWay()
		answered := make(chan int, len(test.waits))
		for _, r := range test.waits {
			r.header = bearer(other)
			if res := a.send(r); res.StatusCode == 429 {
				t.Errorf("%s: %s of another tenant waits", name, r.path)
			}
			r.header = bearer(busy)
			go func() { answered <- a.send(r).StatusCode }()
		}
		check.Eventually(t, "requests that wait for "+name, func() bool { return test.of.underWay() == held+len(test.waits) })
		for _, r := range test.free {
			r.header = bearer(busy)
			a.must(200, nil, r)
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

// TestStreamsOfAKeyAreLimited opens as many streams of replies as a key may have.
// One more is refused and changes nothing; another key's isn't; and one that
// ends makes room.
func TestStreamsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m), func(c *Config) { c.MaxStreams = 2 })
	plant(t, a.store.ForTenant("own"), "c")
	_, one := a.newKey("own")
	_, another := a.newKey("own")
	of := func(key string, r request) request {
		r.header = bearer(key)
		return r
	}
	events := request{method: "GET", path: fill(conversationPathOf + "/replies/{{x}}/events")}
	open := []*listener{a.listen(t.Context(), of(one, ask(replyPathOf, `{"id":"{{x}}"}`))), a.listen(t.Context(), of(one, events))}
	before := a.state()
	for _, r := range []request{events, ask(replyPathOf, `{"message":{"role":"user","content":"x"}}`), ask(replyPathOf, `{"stream":false}`)} {
		check.Has(t, "the detail", a.refused(429, CodeTooManyStreams, of(one, r)).Detail, "2 streams")
	}
	check.Equal(t, "what is stored", a.state(), before)
	open = append(open, a.listen(t.Context(), of(another, events)))
	open[1].res.Body.Close()
	check.Eventually(t, "room for one more", func() bool {
		return a.send(of(one, request{method: http.MethodHead, path: events.path})).StatusCode == 200
	})
	open[1] = a.listen(t.Context(), of(one, events))
	close(m.pieces)
	for _, l := range open {
		l.toEnd()
	}
	check.Eventually(t, "no stream that counts", func() bool { return a.server.limits.replies.underWay() == 0 })
}
