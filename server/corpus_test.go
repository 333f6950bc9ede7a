package server

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-chat/coppice/reply"
)

// A value is JSON that may be odd: raw text, an object whose members keep their
// order and may stand twice, or an array.
type value struct {
	raw     string
	members []namedValue // of an object, where raw is ""
	items   []value      // of an array, where array is set
	array   bool
}

type namedValue struct {
	name string
	value
}

func (v value) String() string {
	var parts []string
	switch {
	case v.raw != "":
		return v.raw
	case v.array:
		for _, item := range v.items {
			parts = append(parts, item.String())
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for _, m := range v.members {
		parts = append(parts, `"`+m.name+`":`+m.String())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// samples gives values that a schema allows, one for each of its alternatives.
// Ids are those that plant made.
func samples(ref *openapi3.SchemaRef, name string, depth int) []value {
	s := ref.Value
	switch {
	case depth > 8:
		return []value{{raw: "{}"}}
	case name == "parent_id" || name == "head_id":
		return []value{{raw: fill(`"{{c.thanks}}"`)}}
	case s.Format == "uuid":
		return []value{{raw: fill(`"{{fresh}}"`)}}
	case len(s.Enum) > 0:
		return []value{{raw: fmt.Sprintf("%q", s.Enum[0])}}
	case len(s.OneOf)+len(s.AnyOf) > 0:
		var all []value
		for _, of := range slices.Concat(s.OneOf, s.AnyOf) {
			all = append(all, samples(of, name, depth+1)...)
		}
		return all
	case s.Type.Includes("string"):
		return []value{{raw: `"words"`}}
	case s.Type.Includes("integer"):
		least := 1.0
		if s.Min != nil {
			least = *s.Min
		}
		return []value{{raw: fmt.Sprint(int(max(least, 1)))}}
	case s.Type.Includes("number"):
		return []value{{raw: "0.5"}}
	case s.Type.Includes("boolean"):
		return []value{{raw: "true"}}
	case s.Type.Includes("array"):
		v := value{array: true}
		v.items = samples(s.Items, name, depth+1)
		return []value{v}
	}
	object := value{}
	for _, of := range slices.Concat(openapi3.SchemaRefs{ref}, s.AllOf) {
		var names []string
		for name := range of.Value.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			object.members = append(object.members, namedValue{name, samples(of.Value.Properties[name], name, depth+1)[0]})
		}
		if of != ref && len(of.Value.AllOf) > 0 {
			object.members = append(object.members, samples(of, "", depth+1)[0].members...)
		}
	}
	if len(object.members) == 0 {
		return []value{{raw: `{"a":1}`}}
	}
	return []value{object}
}

// oddValues are of every type, of no size and of a large one, and what is no
// JSON at all.
var oddValues = []string{
	"null", "true", "false", "0", "-1", "1.5", "-0", "1e400", "9223372036854775808", "2147483648", "0x10", "NaN", "01", "1.", `""`, `" "`, `"\u0000"`, `"\ud800"`, `"\n"`,
	`"é🌳\u202e\ufeff"`, "\"\xff\xfe\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\t\"", `"active"`, `"00000000-0000-0000-0000-000000000000"`, `"{01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa}"`, `"urn:uuid:01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa"`,
	`"` + strings.Repeat("x", 70_000) + `"`, strings.Repeat("9", 5000), "[]", "{}", `[null]`, `[[]]`, `{"":""}`, `{"a":{"a":{"a":null}}}`, `[1,"a",{},[],null]`, deep(40), deep(5000), strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
	"", "undefined", `'x'`, `"unended`, `{"a"}`, `[1,]`,
}

// mutations are what becomes of a value when one place of it is odd, with
// that place.
func mutations(v value, path string) map[string]value {
	all := map[string]value{}
	// Far down, each place gets a third of them, which the next place goes on from.
	step := 1
	if strings.Count(path, ".") > 1 {
		step = 3
	}
	for i := len(path) % step; i < len(oddValues); i += step {
		all[fmt.Sprintf("%s is %.30s", path, oddValues[i])] = value{raw: oddValues[i] + " "} // so that it isn't ""
	}
	for i, m := range v.members {
		with := func(what string, members ...namedValue) {
			all[path+"."+m.name+what] = value{members: slices.Concat(v.members[:i], members, v.members[i+1:])}
		}
		with(" is missing")
		with(" stands twice", m, m)
		with(" stands twice otherwise", m, namedValue{m.name, value{raw: "null"}})
		with(" in capitals", namedValue{strings.ToUpper(m.name), m.value})
		with(" escaped", namedValue{fmt.Sprintf(`\u%04x`, m.name[0]) + m.name[1:], m.value})
		for what, changed := range mutations(m.value, path+"."+m.name) {
			all[what] = value{members: slices.Concat(v.members[:i], []namedValue{{m.name, changed}}, v.members[i+1:])}
		}
	}
	if v.raw == "" && !v.array {
		for _, name := range []string{"zzz", "", "__proto__", strings.Repeat("n", 5000), `\u0000`, "\xff"} {
			all[fmt.Sprintf("%s has %.10q", path, name)] = value{members: slices.Concat(v.members, []namedValue{{name, value{raw: "1"}}})}
		}
	}
	for i, item := range v.items {
		for what, changed := range mutations(item, fmt.Sprintf("%s[%d]", path, i)) {
			all[what] = value{array: true, items: slices.Concat(v.items[:i], []value{changed}, v.items[i+1:])}
		}
	}
	return all
}

// oddTexts stand where a path, a query or a header has a value.
var oddTexts = []string{
	"", " ", "0", "-1", "1", "1001", "99999999999999999999", "1e3", "null", "true", "active", "ACTIVE", "..", "../..", "a/b", "%", "%00", "\x00", "\xff", "é🌳", "\u202e", "\ufeff", "a\nb", "a\tb", "'; drop table nodes; --", "${jndi:ldap://x}",
	"00000000-0000-0000-0000-000000000000", "{01979b2e-8f2b-7cc1-93a6-21e0b1c3f0aa}", "01979b2e8f2b7cc193a621e0b1c3f0aa", "AAAA", "AAY-VQVtsAABl5sujyt8wZOmIeCxw_Cq", "f_________8BeXsujyt8wZOmIeCxw_Cq", "gAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("x", 1001), strings.Repeat("é", 5000), `"unended`, "- or -", "(((", `"a" or "b" -c`, "jsonl", "markdown",
}

var oddHeaders = []http.Header{
	{"Content-Type": {"text/plain"}}, {"Content-Type": {""}}, {"Content-Type": {"application/json; charset=utf-16"}}, {"Content-Type": {"application/json; charset"}}, {"Content-Type": {"multipart/form-data; boundary=x"}}, {"Content-Type": {"a", "b"}}, {"Content-Type": {strings.Repeat("x", 3000)}},
	{"Content-Encoding": {"gzip"}}, {"Content-Encoding": {"identity"}}, {"Content-Encoding": {"br, gzip, deflate"}}, {"Accept-Encoding": {"gzip, br, zstd;q=0"}}, {"Accept": {"image/png"}}, {"Accept": {"text/event-stream"}},
	{"Idempotency-Key": {""}}, {"Idempotency-Key": {strings.Repeat("k", 256)}}, {"Idempotency-Key": {"schlüssel"}}, {"Idempotency-Key": {"a", "b"}}, {"Idempotency-Key": {"a\tb"}},
	{"Last-Event-Id": {"x"}}, {"Last-Event-Id": {"-1"}}, {"Last-Event-Id": {"99999999999999999999"}}, {"Last-Event-Id": {"2147483648"}}, {"Last-Event-Id": {"1", "2"}}, {"X-Request-Id": {strings.Repeat("r", 3000)}}, {"X-Request-Id": {"a b"}},
	{"Range": {"bytes=0-1"}}, {"If-None-Match": {"*"}}, {"If-Modified-Since": {"x"}}, {"Cookie": {strings.Repeat("c=1; ", 5000)}}, {"X-Http-Method-Override": {"DELETE"}}, {"X-Forwarded-Host": {"evil.example"}}, {"Authorization": {"Bearer"}}, {"Authorization": {"Bearer " + strings.Repeat("k", 5000)}}, {"Te": {"trailers"}}, {"Upgrade": {"h2c"}, "Connection": {"Upgrade"}},
}

// A mutant is a request that is odd in one place.
type mutant struct {
	what   string
	r      request
	header http.Header
}

// corpus makes requests of everything that openapi.yaml says of an operation:
// one that it allows for each alternative of the body, and each of them odd in
// one place.
func corpus(t *testing.T, r specRoute) (all []mutant) {
	t.Helper()
	base := visits[r.operation][0].request(r, whose{"c", "c", "hazel"}, "")
	all = append(all, mutant{"as it is", base, nil})
	for _, p := range r.parameters {
		for _, text := range oddTexts {
			m := base
			what := fmt.Sprintf("%s %s is %.30q", p.Value.In, p.Value.Name, text)
			switch p.Value.In {
			case "path":
				at := slices.Index(strings.Split(r.path, "/"), "{"+p.Value.Name+"}")
				path, query, _ := strings.Cut(base.path, "?")
				segments := strings.Split(path, "/")
				segments[at] = url.PathEscape(text)
				if m.path = strings.Join(segments, "/"); query != "" {
					m.path += "?" + query
				}
			case "query":
				separator := "?"
				if strings.Contains(m.path, "?") {
					separator = "&"
				}
				m.path += separator + p.Value.Name + "=" + url.QueryEscape(text)
			default:
				continue // oddHeaders
			}
			all = append(all, mutant{what, m, nil})
		}
	}
	for _, query := range []string{"zzz=1", "=", "&&&", "a;b", "limit", strings.Repeat("a&", 20_000), strings.Repeat("limit=1&", 3000), "%F0%28%8C%28=1", "limit%00=1", "limit=1&Limit=2"} {
		m := base
		m.path = strings.Split(m.path, "?")[0] + "?" + query
		all = append(all, mutant{fmt.Sprintf("query %.30q", query), m, nil})
	}
	for _, h := range oddHeaders {
		all = append(all, mutant{fmt.Sprintf("header %.60v", h), base, h})
	}
	if r.spec.RequestBody == nil {
		m := base
		m.body = `{"unasked":"for"}`
		return append(all, mutant{"a body that nobody reads", m, nil})
	}
	media := r.spec.RequestBody.Value.Content["application/json"]
	if media == nil { // a file
		for _, odd := range oddValues {
			for _, around := range []string{"%s", "[%s]", `{"mapping":%s}`, `[{"role":"user","content":%s}]`, `{"type":"conversation","version":1,"id":%s}`} {
				m := base
				m.body = fmt.Sprintf(around, odd)
				all = append(all, mutant{fmt.Sprintf("a file %.40q", m.body), m, nil})
			}
		}
		return all
	}
	for i, sample := range samples(media.Schema, "", 0) {
		m := base
		m.body = sample.String()
		all = append(all, mutant{fmt.Sprint("sample ", i), m, nil})
		for what, changed := range mutations(sample, "") {
			m.body = changed.String()
			all = append(all, mutant{what, m, nil})
		}
	}
	return all
}

// TestCorpus sends all of it. Nothing may break the server: no answer is a 5xx,
// every refusal is a problem that says how to fix it, what is taken is what
// openapi.yaml allows, and nothing is left under way. It counts goroutines, so
// it doesn't run beside other tests.
func TestCorpus(t *testing.T) {
	m := paced{make(chan string)}
	close(m.pieces) // it answers nothing, at once
	a := newAPI(t, withModels(func(c *reply.Config) { c.Keep = time.Millisecond }, m))
	plant(t, a.store, "c")
	a.must(200, nil, request{method: "GET", path: "/v1/conversations"})
	baseline := a.rest()
	sent := 0
	for _, r := range specRoutes(t) {
		all := corpus(t, r)
		sent += len(all)
		t.Run(r.operation, func(t *testing.T) {
			a := a.with(t)
			var group sync.WaitGroup
			slots := make(chan struct{}, 4)
			for _, m := range all {
				slots <- struct{}{}
				group.Go(func() {
					defer func() { <-slots }()
					a.sendMutant(m)
				})
			}
			group.Wait()
			if r.method == http.MethodDelete {
				_ = a.store.DeleteConversation(t.Context(), named("c"))
				plant(t, a.store, "c")
			}
		})
	}
	t.Logf("%d requests", sent)
	if sent < 5000 {
		t.Errorf("only %d requests: openapi.yaml was not understood", sent)
	}
	defer func() {
		if t.Failed() { // tells which goroutines are left
			_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
		}
	}()
	// Streams that were let go of end by themselves, and their last reads with them.
	eventually(t, fmt.Sprint(baseline, " goroutines"), func() bool { return a.rest() <= baseline })
	eventually(t, "no connection to the database in use", func() bool { return a.pool.Stat().AcquiredConns() == 0 })
	if strings.Contains(a.log.String(), "panic") {
		t.Errorf("something panicked: %s", a.log)
	}
}

// rest closes idle connections and counts goroutines.
func (a *testAPI) rest() int {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return runtime.NumGoroutine()
}

func (a *testAPI) sendMutant(m mutant) {
	req := a.newRequest(m.r)
	for name, values := range m.header {
		req.Header[name] = values
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		if !strings.Contains(err.Error(), "invalid header field value") { // which the client refuses to send
			a.t.Errorf("%s: %v", m.what, err)
		}
		return
	}
	if path := req.URL.Path; res.StatusCode == 200 && strings.HasSuffix(path, "/events") && !strings.Contains(path, "/replies/") {
		res.Body.Close() // it goes on for as long as somebody reads
		return
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		a.t.Errorf("%s: reading the answer: %v", m.what, err)
		return
	}
	out := response{Response: res, body: body}
	if res.StatusCode >= 500 && !(res.StatusCode == 502 && strings.Contains(string(body), "model_bad_response")) {
		a.t.Errorf("%s: %d: %s", m.what, res.StatusCode, body)
		return
	}
	if res.StatusCode < 400 && (len(m.header) > 0 || strings.HasPrefix(m.what, "a body")) { // taken all the same
		return
	}
	if failed := a.quietly(func(b *testAPI) { b.conforms(m.r, out) }); failed != "" {
		a.t.Errorf("%s: %d %.300s\n%s", m.what, res.StatusCode, body, failed)
	}
	if res.StatusCode >= 400 {
		if p := a.problem(out); len(p.Detail) > 1000 || !strings.ContainsAny(p.Detail, ".!") {
			a.t.Errorf("%s: a detail of %d bytes: %.1000s", m.what, len(p.Detail), p.Detail)
		}
	}
}

// quietly gives what f reports, so that it can be told with what it is about.
func (a *testAPI) quietly(f func(*testAPI)) string {
	var told collector
	told.TB = a.t
	b := *a
	b.t = &told
	f(&b)
	return strings.Join(told.said, "\n")
}

type collector struct {
	testing.TB
	said []string
}

func (c *collector) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}
