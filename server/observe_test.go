package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

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
	if len(lines) != 6 {
		t.Fatalf("%d lines for 6 requests: %s", len(lines), a.log)
	}
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
		if lines[i]["bytes"].(float64) <= 0 || lines[i]["duration_ms"].(float64) < 0 {
			t.Errorf("line %d: %v", i, lines[i])
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	for given, kept := range map[string]bool{
		"abc-123": true, strings.Repeat("a", 128): true, "a/b:c_d.e+f=": true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "a\nb": false, "é": false, `"`: false, "{}": false,
	} {
		got := requestID(given)
		if (got == given) != kept || got == "" {
			t.Errorf("requestID(%q) gave %q", given, got)
		}
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
	if _, err := New(Config{Store: emptyStore, Keys: noKeys{}, Registry: registry}); err == nil {
		t.Error("two servers share one registry")
	}
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
		if res := a.must(503, nil, r); a.problem(res).Code != CodeTimeout || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s %v", res.body, res.Header)
		}
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
		if p.Status != c.status || p.Code != c.code {
			t.Errorf("%v: %d %s, want %d %s", c.err, p.Status, p.Code, c.status, c.code)
		}
		check.Lacks(t, c.err.Error(), p.Detail, "duplicate", "boom")
	}
}
