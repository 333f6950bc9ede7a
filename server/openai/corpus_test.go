package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"

	"github.com/coppice-chat/coppice/server/openai/wire"
)

// oddValues are of every type, of no size and of a large one, and what is no
// JSON at all.
var oddValues = []string{
	"null", "true", "-1", "1.5", "1e400", "9223372036854775808", "01", `""`, `" "`, `"\u0000"`, `"\ud800"`, `"é🌳\u202e\ufeff"`, "\"\xff\xfe\"", `"auto"`, `"user"`, `"function_call_output"`,
	`"item_reference"`, `"compaction"`, `"coppice.v1.AAAA"`, `"data:,x"`, `"` + strings.Repeat("x", 70_000) + `"`, strings.Repeat("9", 5000), "[]", "{}", "[null]", `{"a":{"a":{"a":null}}}`, `[1,"a",{},[],null]`,
	strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), `"unended`, `[1,]`,
}

// oddTexts stand where a path or a query has a value.
var oddTexts = []string{
	"", " ", "-1", "101", "99999999999999999999", "null", "../..", "a/b", "%", "%00", "\xff", "é🌳", "a\nb", "'; drop table nodes; --", "00000000-0000-0000-0000-000000000000", "resp_", "conv_AAAA",
	"resp_" + strings.Repeat("A", 43), "conv_" + strings.Repeat("A", 22), "conv_" + strings.Repeat("A", 21) + "B", "chatcmpl-" + strings.Repeat("A", 43), "msg_" + strings.Repeat("A", 43) + "_1",
	"msg_" + strings.Repeat("A", 43) + "_01", "fc_" + strings.Repeat("A", 43) + "_99999999999999999999", strings.Repeat("x", 1001),
}

var oddHeaders = []http.Header{
	{"Content-Type": {"text/plain"}}, {"Content-Type": {"application/json; charset=utf-16"}}, {"Content-Encoding": {"gzip"}}, {"Accept": {"image/png"}}, {"X-Stainless-Retry-Count": {"x"}}, {"X-Stainless-Retry-Count": {"3"}},
	{"X-Coppice-Record": {"maybe"}}, {"X-Coppice-Session": {strings.Repeat("s", 5000)}}, {"Thread-Id": {"\xff"}}, {"Idempotency-Key": {"a", "b"}}, {"X-Request-Id": {strings.Repeat("r", 3000)}}, {"Authorization": {"Bearer"}},
}

// A mutant is a request that is odd in one place.
type mutant struct {
	what, path, body string
	header           http.Header
}

// corpus makes requests of a visit that are odd in one place. Each place of the body
// gets a few of the odd values, and the next place others.
func corpus(t *testing.T, r server.Route, v visit, p plot) (all []mutant) {
	t.Helper()
	path, body := p.fill(r.Pattern), p.fill(v.body)
	for i, segment := range strings.Split(r.Pattern, "/") {
		for _, odd := range oddTexts {
			if segments := strings.Split(path, "/"); strings.HasPrefix(segment, "{") {
				segments[i] = url.PathEscape(odd)
				all = append(all, mutant{fmt.Sprintf("%s is %.30q", segment, odd), strings.Join(segments, "/"), body, nil})
			}
		}
	}
	for i, name := range []string{"limit", "order", "after", "starting_after", "metadata[a]"} {
		for n := i; r.Method == http.MethodGet && n < len(oddTexts); n += 4 {
			all = append(all, mutant{fmt.Sprintf("%s is %.30q", name, oddTexts[n]), path + "?stream=true&" + name + "=" + url.QueryEscape(oddTexts[n]), body, nil})
		}
	}
	for _, query := range []string{"=", "&&&", "a;b", strings.Repeat("a&", 20_000), "%F0%28%8C%28=1", "limit%00=1", "metadata[=1", "%zz"} {
		all = append(all, mutant{fmt.Sprintf("query %.30q", query), path + "?" + query, body, nil})
	}
	for _, h := range oddHeaders {
		all = append(all, mutant{fmt.Sprintf("header %.60v", h), path, body, h})
	}
	if body == "" {
		return append(all, mutant{"a body that nobody reads", path, `{"unasked":"for"}`, nil}, mutant{"no JSON", path, `{`, nil})
	}
	all = append(all, mutant{"no body", path, "", nil})
	for n, at := range regexp.MustCompile(`":|\[|,\{`).FindAllStringIndex(body, -1) { // before a value
		from := at[1]
		if body[from-1] == '{' {
			from--
		}
		var value json.RawMessage
		if json.NewDecoder(strings.NewReader(body[from:])).Decode(&value) != nil { // an empty list
			continue
		}
		for i := n % 10; i < len(oddValues); i += 10 {
			all = append(all, mutant{fmt.Sprintf("%.40s at %d is %.30s", value, from, oddValues[i]), path, body[:from] + oddValues[i] + body[from+len(value):], nil})
		}
	}
	return all
}

// TestCorpus sends odd requests to every route. Nothing may break the server: no
// answer is a 5xx but for what the model answers, every refusal is OpenAI's envelope
// and says how to fix the request, and nothing is left under way. It counts
// goroutines, so it doesn't run beside other tests.
func TestCorpus(t *testing.T) {
	f := field().serve(t)
	rest := func() int {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		return runtime.NumGoroutine()
	}
	p := f.plant("acme")
	baseline := rest()
	sent := 0
	eachVisit(t, func(t *testing.T, r server.Route, v visit) {
		f := f.with(t)
		if !v.nothing {
			p = f.plantFor("acme", r.Pattern+v.query+v.body)
		}
		all := corpus(t, r, v, p)
		sent += len(all)
		var group sync.WaitGroup
		slots := make(chan struct{}, 4)
		for _, m := range all {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				f.sendMutant(r, m)
			})
		}
		group.Wait()
	})
	t.Logf("%d requests", sent)
	if sent < 1500 {
		t.Errorf("only %d requests", sent)
	}
	defer func() {
		if t.Failed() { // tells which goroutines are left
			_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1)
		}
	}()
	check.Eventually(t, fmt.Sprint(baseline, " goroutines"), func() bool { return rest() <= baseline })
	check.Eventually(t, "no connection to the database in use", func() bool { return f.pool.Stat().AcquiredConns() == 0 })
	if log := f.log.String(); strings.Contains(log, "panic") {
		t.Errorf("something panicked: %s", log)
	}
}

// sendMutant sends a request. One that took too long on a busy machine is sent again.
func (f *api) sendMutant(r server.Route, m mutant) {
	f.t.Helper()
	path, query, _ := strings.Cut(m.path, "?")
	var got result
	for range 3 {
		req := f.request("acme", r.Method, "/", m.body)
		req.URL.Opaque, req.URL.RawQuery = "//"+req.URL.Host+path, query
		maps.Copy(req.Header, m.header)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			if !strings.Contains(err.Error(), "invalid header field value") { // which the client refuses to send
				f.t.Errorf("%s: %v", m.what, err)
			}
			return
		}
		if got = f.read(res); got.status != 503 || !strings.Contains(got.body, `"code":"timeout"`) {
			break
		}
	}
	if problem := got.wrong(); problem != "" {
		f.t.Errorf("%s: %d %.600s: %s", m.what, got.status, got.body, problem)
	}
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
	var envelope struct{ Error *wire.ErrorBody }
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

// safeLog is a log that handlers write and tests read.
type safeLog struct {
	mu    sync.Mutex
	text  strings.Builder
	heard func(line string)
}

// hear has a function called with each line from now on.
func (l *safeLog) hear(heard func(line string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = heard
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		l.heard(string(p))
	}
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
