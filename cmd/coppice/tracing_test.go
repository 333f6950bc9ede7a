package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// A fakeCollector takes what OTLP exporters send over HTTP.
type fakeCollector struct {
	url string

	mu       sync.Mutex
	raw      bytes.Buffer // all that came
	headers  http.Header  // of the last request
	spans    []*tracepb.Span
	resource string
}

func newCollector(t *testing.T) *fakeCollector {
	c := new(fakeCollector)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var export collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &export) != nil {
			t.Errorf("%s %s: no export (%v)", r.Method, r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		c.headers = r.Header
		for _, resource := range export.ResourceSpans {
			c.resource = resource.Resource.String()
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// named gives the spans of a name.
func (c *fakeCollector) named(name string) (found []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// below gives the spans of a name right below another span.
func (c *fakeCollector) below(parent *tracepb.Span, name string) (found []*tracepb.Span) {
	for _, s := range c.named(name) {
		if bytes.Equal(s.ParentSpanId, parent.SpanId) && bytes.Equal(s.TraceId, parent.TraceId) {
			found = append(found, s)
		}
	}
	return found
}

func attribute(s *tracepb.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// A server that is told where a collector is traces requests with their
// statements, replies with their models, and compactions; the log names the
// traces, and nothing of what was said is in any of it.
func TestTracing(t *testing.T) {
	t.Parallel()
	const canary = "zebra"
	c := newCollector(t)
	fake := llmtest.NewServer(t)
	fake.Otherwise(llmtest.Answer("The " + canary + " crossed the river at the old mill, and everybody agreed that it was so."))
	s := serve(t, []string{
		"DATABASE_URL=" + dbtest.URL(t), "OPENAI_API_KEY=sk-" + canary, "OPENAI_BASE_URL=" + fake.URL(),
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_EXPORTER_OTLP_HEADERS=x-team=oaks", "OTEL_BSP_SCHEDULE_DELAY=50",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_SERVICE_NAME=wood",
	}, "--reply-model", "gpt-4o", "--summary-model", "gpt-4o-mini")
	path := newTalk(t, s.url)
	mustTalk(t, s.url, path, 10)
	eventually(t, "a compaction", func() bool { return len(look(t, s.url, path).saved) > 0 })

	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path+"/branches/active/replies",
		strings.NewReader(`{"message":{"role":"user","content":"Where is the `+canary+`?"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	events, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !bytes.Contains(events, []byte("event: reply.completed")) {
		t.Fatalf("%v: %s", err, events)
	}
	s.signal(t, syscall.SIGTERM) // upon which it sends what is left
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}

	asked := c.named("POST /v1/conversations/{conversation_id}/branches/{head_id}/replies")
	if len(asked) != 1 || fmt.Sprintf("%x %x", asked[0].TraceId, asked[0].ParentSpanId) != trace+" "+parent || "/v1/conversations/"+attribute(asked[0], "coppice.conversation_id") != path {
		t.Fatalf("the request's span: %v", asked)
	}
	if n := len(c.below(asked[0], "GetConversation")); n == 0 {
		t.Error("the request's statements are not below it")
	}
	replies := c.below(asked[0], "reply")
	if len(replies) != 1 || len(c.below(replies[0], "chat gpt-4o")) != 1 {
		t.Errorf("the reply's spans: %v", replies)
	}
	// Of those in the background: the reply's own may have found work as well.
	compactions := slices.DeleteFunc(c.named("compaction"), func(s *tracepb.Span) bool {
		return attribute(s, "coppice.outcome") != "saved" || attribute(s, "coppice.trigger") != "append"
	})
	if len(compactions) == 0 || len(c.below(compactions[0], "chat gpt-4o-mini")) != 1 || len(compactions[0].ParentSpanId) != 0 || len(compactions[0].Links) != 1 {
		t.Fatalf("the compactions' spans: %v", compactions)
	}
	linked := false
	for _, appended := range c.named("POST /v1/conversations/{conversation_id}/messages") {
		linked = linked || bytes.Equal(appended.SpanId, compactions[0].Links[0].SpanId)
	}
	if !linked {
		t.Error("a compaction's span doesn't name the append that made it due")
	}
	if log := s.logged(); strings.Count(log, `"trace_id":"`+trace+`"`) < 2 || !strings.Contains(log, `"trace_id":"`+fmt.Sprintf("%x", compactions[0].TraceId)) {
		t.Error("the log doesn't name the traces of a request, its reply, or a compaction")
	}
	if c.headers.Get("X-Team") != "oaks" || !strings.Contains(c.resource, `"wood"`) || !strings.Contains(c.resource, "deployment.environment.name") {
		t.Errorf("OpenTelemetry's variables don't hold: %v %s", c.headers, c.resource)
	}
	for _, secret := range []string{canary, "oaks, at some length", "sk-"} {
		if strings.Contains(s.logged(), secret) || bytes.Contains(c.raw.Bytes(), []byte(secret)) {
			t.Errorf("%q is in the traces or the log", secret)
		}
	}
}

func TestTracingWanted(t *testing.T) {
	t.Parallel()
	const endpoint, traces, exporter, disabled, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL"
	type env = map[string]string
	for _, test := range []struct {
		env  env
		want bool
		err  string
	}{
		{env{}, false, ""},
		{env{endpoint: "http://c:4318"}, true, ""},
		{env{traces: "http://c:4318/v1/traces"}, true, ""},
		{env{exporter: "otlp"}, true, ""},
		{env{endpoint: "http://c:4318", exporter: "none"}, false, ""},
		{env{endpoint: "http://c:4318", disabled: "TRUE"}, false, ""},
		{env{disabled: "false"}, false, ""},
		{env{exporter: "console"}, false, "give otlp, or none"},
		{env{endpoint: "http://c:4318", protocol: "http/protobuf"}, true, ""},
		{env{endpoint: "http://c:4317", protocol: "grpc"}, false, "http/protobuf"},
		{env{endpoint: "http://c:4318", protocol: "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, ""},
		{env{protocol: "grpc"}, false, ""},
	} {
		got, err := tracingWanted(func(name string) string { return test.env[name] })
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: %v, %v; want %v, %q", test.env, got, err, test.want, test.err)
		}
	}
}

// A collector that is away costs a server its spans and nothing else.
func TestTracingWithoutCollector(t *testing.T) {
	t.Parallel()
	s := serve(t, []string{"DATABASE_URL=" + dbtest.URL(t), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY=20"})
	mustTalk(t, s.url, newTalk(t, s.url), 2)
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 || !strings.Contains(s.logged(), "traces could not be sent") {
		t.Errorf("exit code %d, or nothing said of the collector", code)
	}
	for args, want := range map[string]string{"OTEL_TRACES_EXPORTER=zipkin": "give otlp, or none", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc": "http/protobuf"} {
		r := runProgram(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", args}, nil, "serve", "--addr", "127.0.0.1:0")
		if r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
}

// Statements are named, and neither their arguments nor what Postgres quotes
// of them in an error is in their spans.
func TestStatementSpans(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	conf, err := pgxpool.ParseConfig(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	conf.ConnConfig.Tracer = newStatementTracer(provider)
	pool, err := pgxpool.NewWithConfig(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx, root := provider.Tracer("test").Start(t.Context(), "request")
	const canary = "zebra"
	_, err = pool.Exec(ctx, "-- name: ReadUUID :one\nselect $1::text::uuid", canary)
	if pgErr := (*pgconn.PgError)(nil); !errors.As(err, &pgErr) || !strings.Contains(err.Error(), canary) {
		t.Fatalf("the caller's error is %v, which should quote the argument", err)
	}
	var batch pgx.Batch
	batch.Queue("select $1::text", canary)
	batch.Queue("select ($1::text)::int", canary)
	if err := pool.SendBatch(ctx, &batch).Close(); err == nil {
		t.Fatal("the batch went well")
	}
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"api_keys"}, []string{"name"}, pgx.CopyFromRows([][]any{{canary}})); err == nil {
		t.Fatal("the copy went well")
	}
	if _, err := pool.Exec(ctx, "select 1 from "+canary); err == nil {
		t.Fatal("a table that isn't there")
	}
	root.End()
	if _, err := pool.Exec(t.Context(), "select 1"); err != nil { // outside a request, as River's
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, s := range spans.GetSpans() {
		names[s.Name]++
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, canary) {
			t.Errorf("a span tells the argument: %s", text)
		}
	}
	if names["ReadUUID"] == 0 || names["SELECT"] < 2 || names["pool.acquire"] < 4 || names["request"] != 1 {
		t.Errorf("spans: %v", names)
	}
}

// A line in a span's context names its trace; other lines stay as they are.
func TestTracedLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	provider := sdktrace.NewTracerProvider()
	log := tracing{provider}.logger(slog.New(slog.NewTextHandler(&out, nil))).With("a", 1).WithGroup("g")
	ctx, span := provider.Tracer("test").Start(context.Background(), "x")
	log.InfoContext(ctx, "inside")
	log.Info("outside")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := span.SpanContext().TraceID().String(); len(lines) != 2 || !strings.Contains(lines[0], want) || strings.Contains(lines[1], "trace_id") {
		t.Errorf("the log is %q", lines)
	}
	plain := slog.New(slog.DiscardHandler)
	if (tracing{}).logger(plain) != plain || (tracing{}).tracer() != nil || (tracing{}).statementTracer() != nil {
		t.Error("what isn't traced is wrapped all the same")
	}
}
