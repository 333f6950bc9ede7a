package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// requestFor makes a request of the default tenant's that never came.
func requestFor(s *Server) *Request {
	r := &Request{Request: httptest.NewRequest("GET", "/", nil), server: s, route: new(route), who: access.Principal{Tenant: tree.DefaultTenant}}
	r.answer.ResponseWriter = httptest.NewRecorder()
	return r
}

// lines are the log's lines, decoded.
func (a *testAPI) lines() (out []map[string]any) {
	a.t.Helper()
	scanner := bufio.NewScanner(strings.NewReader(a.log.String()))
	for scanner.Scan() {
		var line map[string]any
		check.NoError(a.t, json.Unmarshal(scanner.Bytes(), &line))
		out = append(out, line)
	}
	return out
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	const secret = "zebra-in-the-text"
	header := map[string]string{"X-Request-Id": "trace-1/span:2"}
	a.must(201, nil, request{method: "POST", path: fill(appendPath), body: fill(message(`"role":"user","content":"` + secret + `"`)), header: header})
	a.must(400, nil, request{method: "POST", path: fill(appendPath), body: fill(message(`"role":"` + secret + `","content":"` + secret + `"`))})
	a.must(400, nil, request{method: "POST", path: fill(appendPath), body: `{"` + secret})
	a.must(200, nil, request{method: "GET", path: "/v1/search?query=" + secret})
	a.must(404, nil, request{method: "GET", path: "/" + secret})
	a.must(200, nil, request{method: "GET", path: "/healthz"})
	check.Lacks(t, "the log", a.log.String(), "zebra")
	lines := a.lines()
	check.Need(t, len(lines) == 6, "%d lines for 6 requests: %s", len(lines), a.log)
	for i, want := range []map[string]any{
		{"level": "INFO", "method": "POST", "route": "/v1/conversations/{conversation_id}/messages", "status": 201.0, "request_id": "trace-1/span:2", "tenant_id": "default", "client": "127.0.0.1", "conversation_id": named("c").String()},
		{"level": "INFO", "status": 400.0, "code": "invalid_role"},
		{"status": 400.0, "code": "invalid_json"},
		{"method": "GET", "route": "/v1/search", "status": 200.0},
		{"route": "none", "status": 404.0, "code": "route_not_found"},
		{"level": "DEBUG", "route": "/healthz"},
	} {
		for name, value := range want {
			check.Equal(t, fmt.Sprintf("line %d: %s", i, name), lines[i][name], value)
		}
		check.That(t, lines[i]["bytes"].(float64) > 0 && lines[i]["duration_ms"].(float64) >= 0, "line %d: %v", i, lines[i])
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	for given, kept := range map[string]bool{
		"abc-123": true, strings.Repeat("a", 128): true, "a/b:c_d.e+f=": true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "a\nb": false, "é": false, `"`: false, "{}": false,
	} {
		got := requestID(given)
		check.That(t, (got == given) == kept && got != "", "requestID(%q) gave %q", given, got)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "coppice_pool_connections", Help: "Of the caller's."}, func() float64 { return 7 }))
	a := newAPI(t, func(c *Config) { c.Registry = registry })
	plant(t, a.store, "c")
	path := fill(appendPath)
	for _, r := range []struct {
		status int
		body   string
	}{
		{201, fill(message(`"id":"{{m}}","role":"user","content":"x"`))},
		{200, fill(message(`"id":"{{m}}","role":"user","content":"x"`))},
		{409, fill(message(`"id":"{{m}}","role":"user","content":"y"`))},
		{201, chainOf(3)},
		{400, `{`},
	} {
		a.must(r.status, nil, request{method: "POST", path: path, body: r.body})
	}
	a.must(404, nil, request{method: "GET", path: "/made-up/1"})
	a.must(404, nil, request{method: "GET", path: "/made-up/2"})
	a.must(405, nil, request{method: "MADEUP", path: "/healthz"})
	text := string(a.must(200, nil, request{method: "GET", path: "/metrics", header: map[string]string{"Accept-Encoding": "gzip", "Accept": "application/openmetrics-text"}}).body)
	check.Has(t, "the metrics", text,
		`coppice_http_requests_total{method="POST",route="/v1/conversations/{conversation_id}/messages",status="201"} 2`,
		`coppice_http_requests_total{method="POST",route="/v1/conversations/{conversation_id}/messages",status="409"} 1`,
		`coppice_http_requests_total{method="GET",route="none",status="404"} 2`,
		`coppice_http_requests_total{method="other",`,
		`coppice_http_request_duration_seconds_count{method="POST",route="/v1/conversations/{conversation_id}/messages"} 5`,
		`coppice_appends_total{outcome="created"} 2`,
		`coppice_appends_total{outcome="replayed"} 1`,
		`coppice_appends_total{outcome="refused"} 1`,
		`coppice_appends_total{outcome="failed"} 0`,
		`coppice_appended_messages_total 4`,
		`coppice_http_requests_in_flight 1`,
		`coppice_pool_connections 7`,
	)
	_, err := New(Config{Store: emptyStore, Keys: keyring(nil), Registry: registry})
	check.That(t, err != nil, "two servers share one registry")
}

func TestPanicIsAProblem(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.Ready = func(context.Context) error { panic("a bug") } })
	res := a.must(500, nil, request{method: "GET", path: "/readyz"})
	check.Lacks(t, "the answer", string(res.body), "a bug")
	check.Has(t, "the log", a.log.String(), "a bug", "TestPanicIsAProblem", res.Header.Get("X-Request-Id"))
	a.must(200, nil, request{method: "GET", path: "/healthz"})
}

// TestTimeouts holds a conversation's lock, so that a write can't get on.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(cfg *Config) { cfg.RequestTimeout = 100 * time.Millisecond })
	a.unhurried()
	plant(t, a.store, "c")
	tx := check.Must(a.pool.Begin(t.Context()))(t)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	check.Must(tx.Exec(t.Context(), "select from conversations where id = $1 for update", named("c")))(t)
	for _, r := range []request{
		{method: "POST", path: fill(appendPath), body: fill(message(`"role":"user","content":"x"`))},
		{method: "PATCH", path: fill(conversationPathOf), body: `{"title":"x"}`},
	} {
		res := a.must(503, nil, r)
		check.That(t, a.problem(res).Code == CodeTimeout && res.Header.Get("Retry-After") != "", "%s %v", res.body, res.Header)
	}
}

// fromDatabase is an error as a store gives it.
func fromDatabase(err error) error {
	db.Wrap(&err, "tree.Append")
	return err
}

func sqlError(code string) error {
	return fromDatabase(&pgconn.PgError{Code: code, Message: "duplicate key value, says the database"})
}

func TestUnknownErrorsStayInside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   Code
	}{
		{errors.New("boom"), 500, CodeInternalError},
		{sqlError("23505"), 500, CodeInternalError},
		{sqlError("57014"), 503, CodeTimeout},
		{sqlError("55P03"), 503, CodeTimeout},
		{sqlError("40P01"), 503, CodeTimeout},
		{sqlError("57P01"), 503, CodeDatabaseUnavailable},
		{sqlError("53300"), 503, CodeDatabaseUnavailable},
		{sqlError("08006"), 503, CodeDatabaseUnavailable},
		{fromDatabase(fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})), 503, CodeDatabaseUnavailable},
		{sqlError("42P01"), 500, CodeInternalError},
		{&fault.Error{Kind: "of another program", Code: "boom", Detail: "boom"}, 500, CodeInternalError},
		{fault.NotFound, 500, CodeInternalError},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 503, CodeTimeout},
		{fmt.Errorf("x: %w", context.Canceled), 499, CodeRequestCanceled},
	} {
		p := toProblem(c.err)
		check.Equal(t, c.err.Error(), fmt.Sprint(p.Status, p.Code), fmt.Sprint(c.status, c.code))
		check.Lacks(t, c.err.Error(), p.Detail, "duplicate", "boom")
	}
}

// newTracedAPI is a server whose spans are kept.
func newTracedAPI(t *testing.T, changes ...func(*Config)) (*testAPI, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	return newAPI(t, append(changes, func(c *Config) { c.Tracing = provider })...), spans
}

// await gives the span of a request that was answered: it ends a moment later.
func await(t *testing.T, spans *tracetest.InMemoryExporter) tracetest.SpanStub {
	t.Helper()
	check.Eventually(t, "a span", func() bool { return len(spans.GetSpans()) > 0 })
	all := spans.GetSpans()
	if spans.Reset(); len(all) > 1 {
		t.Fatalf("%d spans of one request: %v", len(all), all)
	}
	return all[0]
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

const (
	callerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan  = "00f067aa0ba902b7"
)

func TestTracesRequests(t *testing.T) {
	t.Parallel()
	a, spans := newTracedAPI(t)
	plant(t, a.store, "c")
	for _, test := range []struct {
		request
		status int
		name   string
		want   map[string]string
	}{
		{request{method: "POST", path: fill(appendPath), body: fill(message(`"role":"user","content":"x"`))}, 201,
			"POST /v1/conversations/{conversation_id}/messages",
			map[string]string{"coppice.conversation_id": named("c").String(), "coppice.tenant_id": "default", "http.response.status_code": "201"}},
		{request{method: "GET", path: fill("/v1/conversations/{{c}}/branches/{{c.thanks}}/context")}, 200,
			"GET /v1/conversations/{conversation_id}/branches/{head_id}/context",
			map[string]string{"coppice.head_id": named("c.thanks").String()}},
		{request{method: "GET", path: fill("/v1/conversations/{{c}}/branches/active/context")}, 200,
			"GET /v1/conversations/{conversation_id}/branches/{head_id}/context", map[string]string{"coppice.head_id": ""}},
		{request{method: "GET", path: fill("/v1/conversations/{{absent}}")}, 404,
			"GET /v1/conversations/{conversation_id}", map[string]string{"error.type": "conversation_not_found"}},
		{request{method: "GET", path: "/v1/search?query=hazel"}, 200, "GET /v1/search", nil},
		{streamed(ask(replyPathOf, "")), 200, "POST /v1/conversations/{conversation_id}/branches/{head_id}/replies", nil},
		{request{method: "GET", path: "/v1/made-up/2"}, 404, "GET none", map[string]string{"http.route": "none"}},
		{request{method: "MADEUP", path: "/v1/search"}, 405, "other /v1/search", nil},
	} {
		test.header = map[string]string{"Traceparent": "00-" + callerTrace + "-" + callerSpan + "-01"}
		res := a.must(test.status, nil, test.request)
		s := await(t, spans)
		attributes := attributesOf(s)
		check.Equal(t, "the span of "+test.path, fmt.Sprint(s.Name, " ", s.SpanKind), fmt.Sprint(test.name, " ", trace.SpanKindServer))
		check.Equal(t, "the trace of "+test.path, fmt.Sprint(s.SpanContext.TraceID(), s.Parent.SpanID(), s.Parent.IsRemote()), fmt.Sprint(callerTrace, " ", callerSpan, " true"))
		check.Equal(t, test.path+": request id", attributes["coppice.request_id"], res.Header.Get("X-Request-Id"))
		for name, want := range test.want {
			check.Equal(t, fmt.Sprintf("%s: %s", test.path, name), attributes[name], want)
		}
	}
	a.must(200, nil, request{method: "GET", path: "/healthz"})
	a.must(200, nil, request{method: "GET", path: "/metrics"})
	all := spans.GetSpans()
	check.That(t, len(all) == 0, "probes are traced: %v", all)
}

// A request whose answer breaks off, or whose handler panics, has a whole span.
func TestTracesFailures(t *testing.T) {
	t.Parallel()
	a, spans := newTracedAPI(t)
	a.server.router.add(newRoute(a.server.apis[0], Route{Method: "GET", Pattern: "/v1/cut", Handle: func(r *Request) (Answer, error) {
		r.answer.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(&r.answer).Flush(); err != nil {
			t.Error(err)
		}
		return nil, errors.New("zebra")
	}}))
	a.server.router.add(newRoute(a.server.apis[0], Route{Method: "GET", Pattern: "/v1/panic", Handle: func(*Request) (Answer, error) { panic("zebra") }}))
	for path, status := range map[string]string{"/v1/cut": "", "/v1/panic": "500"} {
		res := check.Must(http.Get(a.url + path))(t)
		io.Copy(io.Discard, res.Body) // of which one ends in an error
		res.Body.Close()
		s := await(t, spans)
		if text := fmt.Sprintf("%+v", s); s.Status.Code != codes.Error || attributesOf(s)["http.response.status_code"] != status || strings.Contains(text, "zebra") {
			t.Errorf("%s: %s", path, text)
		}
	}
}
