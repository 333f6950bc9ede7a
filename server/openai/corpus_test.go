package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
)

// oddValues are of every type, of no size and of a large one, and what is no
// JSON at all.
var oddValues = []string{
	"null", "true", "false", "0", "-1", "1.5", "-0", "1e400", "9223372036854775808", "2147483648", "0x10", "NaN", "01", `""`, `" "`, `"\u0000"`, `"\ud800"`,
	`"é🌳\u202e\ufeff"`, "\"\xff\xfe\"", "\"\t\"", `"offline"`, `"auto"`, `"user"`, `"function_call_output"`, `"item_reference"`, `"compaction"`, `"coppice.v1.AAAA"`, `"data:,x"`,
	`"` + strings.Repeat("x", 70_000) + `"`, `"` + strings.Repeat("é", 500) + `"`, strings.Repeat("9", 5000), "[]", "{}", "[null]", "[[]]", `{"":""}`, `{"a":{"a":{"a":null}}}`, `[1,"a",{},[],null]`,
	strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), "undefined", `'x'`, `"unended`, `{"a"}`, `[1,]`,
}

// oddTexts stand where a path or a query has a value.
var oddTexts = []string{
	"", " ", "0", "-1", "1", "101", "99999999999999999999", "1e3", "null", "..", "../..", "a/b", "%", "%00", "\x00", "\xff", "é🌳", "\u202e", "a\nb", "'; drop table nodes; --", "asc", "true",
	"00000000-0000-0000-0000-000000000000", "resp_", "conv_AAAA", "resp_" + strings.Repeat("A", 43), "conv_" + strings.Repeat("A", 22), "conv_" + strings.Repeat("A", 21) + "B", "chatcmpl-" + strings.Repeat("A", 43), "msg_" + strings.Repeat("A", 43) + "_1",
	"msg_" + strings.Repeat("A", 43) + "_01", "fc_" + strings.Repeat("A", 43) + "_99999999999999999999", "resp_" + strings.Repeat("A", 42) + "\n", strings.Repeat("x", 1001), strings.Repeat("é", 5000),
}

var oddHeaders = []http.Header{
	{"Content-Type": {"text/plain"}}, {"Content-Type": {""}}, {"Content-Type": {"application/json; charset=utf-16"}}, {"Content-Type": {"multipart/form-data; boundary=x"}}, {"Content-Type": {strings.Repeat("x", 3000)}},
	{"Content-Encoding": {"gzip"}}, {"Accept": {"image/png"}}, {"Accept": {"text/event-stream"}}, {"X-Stainless-Retry-Count": {"x"}}, {"X-Stainless-Retry-Count": {"-1"}}, {"X-Stainless-Retry-Count": {"3"}}, {"X-Coppice-Record": {"maybe"}},
	{"X-Coppice-Session": {strings.Repeat("s", 5000)}}, {"X-Coppice-Session": {"a", "b"}}, {"Thread-Id": {"\xff"}}, {"Idempotency-Key": {""}}, {"Idempotency-Key": {"a", "b"}}, {"Last-Event-Id": {"x"}}, {"X-Request-Id": {strings.Repeat("r", 3000)}},
	{"Range": {"bytes=0-1"}}, {"Cookie": {strings.Repeat("c=1; ", 5000)}}, {"X-Http-Method-Override": {"DELETE"}}, {"Authorization": {"Bearer"}}, {"Authorization": {"Bearer " + strings.Repeat("k", 5000)}}, {"Openai-Organization": {"org"}}, {"Openai-Beta": {"x=1"}},
}

// A literal is JSON, or what stands in its place, as it is sent.
type literal string

// written writes a value, whose literals stay as they are.
func written(v any) string {
	var parts []string
	switch v := v.(type) {
	case literal:
		return string(v)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%q:%s", name, written(v[name])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, element := range v {
			parts = append(parts, written(element))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	raw, _ := json.Marshal(v) // it was read as JSON
	return string(raw)
}

// mutations calls each with what becomes of a value when one place of it is odd,
// with that place. Far down, each place gets a third of the odd values, and the
// next place others.
func mutations(v any, at string, each func(what, body string)) {
	step := 1
	if strings.Count(at, ".") > 1 {
		step = 3
	}
	for i := len(at) % step; i < len(oddValues); i += step {
		each(fmt.Sprintf("%s is %.30s", at, oddValues[i]), oddValues[i])
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			with := maps.Clone(v)
			delete(with, name)
			each(at+"."+name+" is missing", written(with))
			member := fmt.Sprintf("%q:%s", name, written(v[name]))
			rest := strings.TrimSuffix(strings.TrimPrefix(written(with), "{"), "}")
			for what, more := range map[string]string{" stands twice": member, " stands twice otherwise": fmt.Sprintf("%q:null", name)} {
				each(at+"."+name+what, "{"+strings.Trim(strings.Join([]string{member, more, rest}, ","), ",")+"}")
			}
			mutations(v[name], at+"."+name, func(what, body string) {
				with[name] = literal(body)
				each(what, written(with))
			})
		}
		for _, name := range []string{"zzz", "", "__proto__", strings.Repeat("n", 5000)} {
			with := maps.Clone(v)
			with[name] = 1
			each(fmt.Sprintf("%s has %.10q", at, name), written(with))
		}
	case []any:
		for i := range v {
			with := slices.Clone(v)
			mutations(v[i], fmt.Sprintf("%s[%d]", at, i), func(what, body string) {
				with[i] = literal(body)
				each(what, written(with))
			})
		}
	}
}

// A mutant is a request that is odd in one place.
type mutant struct {
	what, path, body string
	header           http.Header
}

// corpus makes requests of a visit: the visit as it is, and odd in one place.
func corpus(t *testing.T, r server.Route, v visit, p plot) (all []mutant) {
	t.Helper()
	path, body := p.fill(r.Pattern), p.fill(v.body)
	all = append(all, mutant{"as it is", path + p.fill(v.query), body, nil})
	for i, segment := range strings.Split(r.Pattern, "/") {
		for _, odd := range oddTexts {
			if segments := strings.Split(path, "/"); strings.HasPrefix(segment, "{") {
				segments[i] = url.PathEscape(odd)
				all = append(all, mutant{fmt.Sprintf("%s is %.30q", segment, odd), strings.Join(segments, "/"), body, nil})
			}
		}
	}
	if r.Method == http.MethodGet {
		for _, name := range []string{"limit", "order", "after", "stream", "starting_after", "model", "metadata[a]", "include[]"} {
			for _, odd := range oddTexts {
				all = append(all, mutant{fmt.Sprintf("%s is %.30q", name, odd), path + "?stream=true&" + name + "=" + url.QueryEscape(odd), body, nil})
			}
		}
	}
	for _, query := range []string{"zzz=1", "=", "&&&", "a;b", "limit", strings.Repeat("a&", 20_000), strings.Repeat("limit=1&", 3000), "%F0%28%8C%28=1", "limit%00=1", "metadata[=1", "metadata=1", "%zz"} {
		all = append(all, mutant{fmt.Sprintf("query %.30q", query), path + "?" + query, body, nil})
	}
	for _, h := range oddHeaders {
		all = append(all, mutant{fmt.Sprintf("header %.60v", h), path, body, h})
	}
	if body == "" {
		return append(all, mutant{"a body that nobody reads", path, `{"unasked":"for"}`, nil}, mutant{"no JSON", path, `{`, nil})
	}
	var sample any
	if err := json.Unmarshal([]byte(body), &sample); err != nil {
		t.Fatal(err)
	}
	all = append(all, mutant{"no body", path, "", nil})
	mutations(sample, "", func(what, body string) { all = append(all, mutant{what, path, body, nil}) })
	return all
}

// TestCorpus sends all of it. Nothing may break the server: no answer is a 5xx
// but for what the model answers, every refusal is OpenAI's envelope and says how to
// mend the request, and nothing is left under way. It counts goroutines, so it
// doesn't run beside other tests.
func TestCorpus(t *testing.T) {
	f := newField(t)
	rest := func() int {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		return runtime.NumGoroutine()
	}
	f.plant("acme")
	baseline := rest()
	sent := 0
	eachVisit(t, func(t *testing.T, r server.Route, v visit) {
		f := f.with(t)
		all := corpus(t, r, v, f.plant("acme"))
		sent += len(all)
		var group sync.WaitGroup
		slots := make(chan struct{}, 4)
		if got := f.sendMutant(r, all[0]); got.status != 200 {
			t.Errorf("as it is: %d %s", got.status, got.body)
		}
		for _, m := range all[1:] {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				f.sendMutant(r, m)
			})
		}
		group.Wait()
	})
	t.Logf("%d requests", sent)
	if sent < 5000 {
		t.Errorf("only %d requests", sent)
	}
	defer func() {
		if t.Failed() { // tells which goroutines are left
			_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
		}
	}()
	eventually(t, fmt.Sprint(baseline, " goroutines"), func() bool { return rest() <= baseline })
	eventually(t, "no connection to the database in use", func() bool { return f.pool.Stat().AcquiredConns() == 0 })
	if log := f.log.String(); strings.Contains(log, "panic") {
		t.Errorf("something panicked: %s", log)
	}
}

// sendMutant sends a request. One that took too long on a busy machine is sent again.
func (f *field) sendMutant(r server.Route, m mutant) (got result) {
	f.t.Helper()
	path, query, _ := strings.Cut(m.path, "?")
	for range 3 {
		req := f.request("acme", r.Method, "/", m.body)
		req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query
		maps.Copy(req.Header, m.header)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			if !strings.Contains(err.Error(), "invalid header field value") { // which the client refuses to send
				f.t.Errorf("%s: %v", m.what, err)
			}
			return result{}
		}
		if got = f.read(res); got.status != 503 || !strings.Contains(got.body, `"code":"timeout"`) {
			break
		}
	}
	if problem := got.wrong(); problem != "" {
		f.t.Errorf("%s: %d %.600s: %s", m.what, got.status, got.body, problem)
	}
	return got
}

// wrong says what an answer lacks, be it of a request that was taken or of one
// that was refused; "" for nothing.
func (got result) wrong() string {
	events := got.header.Get("Content-Type") == "text/event-stream"
	switch {
	case got.header.Get("X-Request-Id") == "":
		return "no X-Request-Id"
	case got.status == 200 && events:
		for line := range strings.Lines(got.body) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				return "an event is no JSON"
			}
		}
		return ""
	case got.header.Get("Content-Type") != "application/json", !json.Valid([]byte(got.body)):
		return "it is no JSON"
	case got.status == 200:
		return ""
	}
	var envelope struct{ Error *openai.ErrorBody }
	_ = json.Unmarshal([]byte(got.body), &envelope) // it is JSON
	e := envelope.Error
	switch {
	case e == nil || e.Type == "":
		return "it is not the envelope"
	case got.status >= 500 && !(got.status == 502 && e.Code != nil && *e.Code == "model_bad_response"):
		return "the server failed"
	case len(e.Message) > 1000 || !strings.ContainsAny(e.Message, ".!"):
		return fmt.Sprintf("a message of %d bytes", len(e.Message))
	case e.Param != nil && len(*e.Param) > 300:
		return fmt.Sprintf("a param of %d bytes", len(*e.Param))
	}
	return ""
}
