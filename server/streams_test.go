package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestStreamsOfAKeyAreLimited opens as many streams of replies as a key may have.
// One more is refused and changes nothing; another key's isn't; and one that
// ends makes room.
func TestStreamsOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m), func(c *Config) { c.MaxStreams = 3 })
	plant(t, a.store.ForTenant("own"), "c")
	_, one := a.newKey("own")
	_, another := a.newKey("own")
	of := func(key string, r request) request {
		r.header = bearer(key)
		if r.body != nil {
			r.header["Content-Type"] = "application/json"
		}
		return r
	}
	events := request{method: "GET", path: fill(conversationPathOf + "/replies/{{x}}/events")}
	open := []*listener{a.listen(t.Context(), of(one, ask(replyPathOf, `{"id":"{{x}}"}`)))}
	for range 2 {
		open = append(open, a.listen(t.Context(), of(one, events)))
	}
	before := a.state()
	for _, r := range []request{{method: http.MethodHead, path: events.path}, events, ask(replyPathOf, `{"message":{"role":"user","content":"x"}}`), ask(replyPathOf, `{"stream":false}`)} {
		res := a.send(of(one, r))
		if res.StatusCode != 429 || res.Header.Get("Retry-After") == "" || r.method != http.MethodHead && a.problem(res).Code != CodeTooManyStreams {
			t.Fatalf("%s %s: %d: %s", r.method, r.path, res.StatusCode, res.body)
		}
	}
	if p := a.refused(429, CodeTooManyStreams, of(one, events)); !strings.Contains(p.Detail, "3 streams") {
		t.Error(p.Detail)
	}
	if a.state() != before {
		t.Error("a refused request changed something")
	}
	a.must(200, nil, of(one, request{method: "GET", path: "/v1/conversations"}))
	open = append(open, a.listen(t.Context(), of(another, events)))
	open[1].res.Body.Close()
	eventually(t, "room for one more", func() bool {
		res := a.send(of(one, request{method: http.MethodHead, path: events.path}))
		return res.StatusCode == 200
	})
	open[1] = a.listen(t.Context(), of(one, events))
	m.pieces <- "A wood."
	close(m.pieces)
	for _, l := range open {
		if end := l.toEnd(); end.name != "reply.completed" {
			t.Errorf("%+v", end)
		}
	}
	eventually(t, "no stream that counts", func() bool { return a.server.limits.replies.underWay() == 0 })
}
