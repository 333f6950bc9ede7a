package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/reply"
)

// oddValues stand where a body has a member: of every type, of no size and of a large
// one, and what is no JSON.
var oddValues = []string{
	"null", "true", "-1", "1.5", "1e400", "9223372036854775808", `""`, `"\u0000"`, `"\ud800"`, `"\n"`, "\"\xff\xfe\"", `"é🌳\u202e"`, `"active"`, `"00000000-0000-0000-0000-000000000000"`,
	`"` + strings.Repeat("x", 70_000) + `"`, "[]", "{}", `[null]`, `{"":""}`, `[1,"a",{},[],null]`, deep(40), deep(5000), "", `"unended`,
}

// oddTexts stand where a path or a query has a value.
var oddTexts = []string{
	"", " ", "-1", "99999999999999999999", "active", "../..", "a/b", "%", "\x00", "\xff", "é🌳", "a\nb", "'; drop table nodes; --", "00000000-0000-0000-0000-000000000000", "{01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa}",
	"AAAA", "f_________8BeXsujyt8wZOmIeCxw_Cq", "gAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("é", 5000), `"unended`, "(((",
}

var oddHeaders = []http.Header{
	{"Content-Type": {""}}, {"Content-Type": {"application/json; charset"}}, {"Content-Type": {"a", "b"}}, {"Content-Encoding": {"br, gzip, deflate"}}, {"Accept": {"image/png"}}, {"Idempotency-Key": {"a", "b"}}, {"Idempotency-Key": {"a\tb"}},
	{"Last-Event-Id": {"99999999999999999999"}}, {"Last-Event-Id": {"1", "2"}}, {"X-Request-Id": {"a b"}}, {"Range": {"bytes=0-1"}}, {"If-None-Match": {"*"}}, {"Cookie": {strings.Repeat("c=1; ", 5000)}}, {"Authorization": {"Bearer"}}, {"Upgrade": {"h2c"}, "Connection": {"Upgrade"}},
}

// A mutant is a request that is odd in one place.
type mutant struct {
	what   string
	r      request
	header http.Header
}

// corpus makes requests of a visit, each of them odd in one place that openapi.yaml names.
func corpus(t *testing.T, r specRoute) (all []mutant) {
	t.Helper()
	base := visits[r.operation][0].request(r, whose{"c", "c", "hazel"}, nil)
	path, query, _ := strings.Cut(base.path, "?")
	for n, p := range r.parameters {
		step := 1
		if p.Value.In == "path" { // whose ids are read alike everywhere: each gets a third of the texts
			step = 3
		}
		for i := (n + len(r.operation)) % step; i < len(oddTexts); i += step {
			m, text := base, oddTexts[i]
			switch p.Value.In {
			case "path":
				segments := strings.Split(path, "/")
				segments[slices.Index(strings.Split(r.path, "/"), "{"+p.Value.Name+"}")] = url.PathEscape(text)
				m.path = strings.Join(segments, "/") + "?" + query
			case "query":
				m.path = path + "?" + query + "&" + p.Value.Name + "=" + url.QueryEscape(text)
			}
			all = append(all, mutant{fmt.Sprintf("%s %s is %.30q", p.Value.In, p.Value.Name, text), m, nil})
		}
	}
	for _, odd := range []string{"zzz=1", "=", "&&&", "a;b", strings.Repeat("a&", 20_000), "%F0%28%8C%28=1", "limit%00=1"} {
		m := base
		m.path = path + "?" + odd
		all = append(all, mutant{fmt.Sprintf("query %.30q", odd), m, nil})
	}
	for i := len(r.operation) % 3; i < len(oddHeaders); i += 3 {
		all = append(all, mutant{fmt.Sprintf("header %.60v", oddHeaders[i]), base, oddHeaders[i]})
	}
	bodies := []string{`{"unasked":"for"}`}
	if r.spec.RequestBody != nil {
		bodies = oddBodies(t, base, r.spec.RequestBody.Value.Content["application/json"])
	}
	for _, body := range bodies {
		m := base
		m.body = body
		all = append(all, mutant{fmt.Sprintf("a body %.60q", body), m, nil})
	}
	return all
}

// oddBodies are the body of a request with an odd value for each member that it may
// have, or files that hold one.
func oddBodies(t *testing.T, base request, media *openapi3.MediaType) (bodies []string) {
	t.Helper()
	if media == nil {
		for _, odd := range oddValues {
			bodies = append(bodies, odd, `{"mapping":`+odd+`}`, `[{"role":"user","content":`+odd+`}]`, `{"type":"conversation","version":1,"id":`+odd+`}`)
		}
		return bodies
	}
	sound, _ := base.body.(string)
	members := map[string]json.RawMessage{}
	if sound != "" {
		check.NoError(t, json.Unmarshal([]byte(sound), &members))
	}
	for _, of := range append(media.Schema.Value.OneOf, media.Schema) {
		for name := range membersOf(of) {
			before := members[name]
			delete(members, name)
			rest := check.Must(json.Marshal(members))(t)
			open := strings.Replace(strings.TrimSuffix(string(rest), "}")+",", "{,", "{", 1)
			for _, odd := range oddValues {
				bodies = append(bodies, open+`"`+name+`":`+odd+"}")
			}
			bodies = append(bodies, string(rest), open+`"`+name+`":1,"`+name+`":1}`, open+`"`+strings.ToUpper(name)+`":1}`)
			if before != nil {
				members[name] = before
			}
		}
	}
	return append(bodies, oddValues...)
}

// TestCorpus sends all of it. Nothing may break the server: no answer is a 5xx,
// every refusal is a problem, and what is taken is what openapi.yaml allows.
func TestCorpus(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	close(m.pieces) // it answers nothing, at once
	a := newAPI(t, withModels(func(c *reply.Config) { c.Keep = time.Millisecond }, m))
	plant(t, a.store, "c")
	sent := 0
	for _, r := range specRoutes(t) {
		all := corpus(t, r)
		sent += len(all)
		var group sync.WaitGroup
		slots := make(chan struct{}, 4)
		for _, m := range all {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				a.sendMutant(r.operation, m)
			})
		}
		group.Wait()
		if r.method == http.MethodDelete {
			_ = a.store.DeleteConversation(t.Context(), named("c"))
			plant(t, a.store, "c")
		}
	}
	t.Logf("%d requests", sent)
	check.That(t, sent >= 2500, "only %d requests: openapi.yaml was not understood", sent)
	check.Eventually(t, "no connection to the database in use", func() bool { return a.pool.Stat().AcquiredConns() == 0 })
	check.Lacks(t, "the log", a.log.String(), "panic")
}

func (a *testAPI) sendMutant(operation string, m mutant) {
	req := a.newRequest(m.r)
	for name, values := range m.header {
		req.Header[name] = values
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		a.t.Errorf("%s, %s: %v", operation, m.what, err)
		return
	}
	defer res.Body.Close()
	if path := req.URL.Path; res.StatusCode == 200 && strings.HasSuffix(path, "/events") && !strings.Contains(path, "/replies/") {
		return // it goes on for as long as somebody reads
	}
	body, err := io.ReadAll(res.Body)
	switch taken := res.StatusCode < 400; {
	case err != nil || res.StatusCode >= 500 && !strings.Contains(string(body), "model_bad_response"):
		a.t.Errorf("%s, %s: %d, %v: %.500s", operation, m.what, res.StatusCode, err, body)
	case !taken || m.header == nil && !strings.Contains(m.what, "unasked"):
		a.conforms(m.r, response{Response: res, body: body})
	}
}
