package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/internal/check"
)

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
		if s.Name != test.name || s.SpanKind != trace.SpanKindServer {
			t.Errorf("%s %s: the span is %q of kind %v, want %q", test.method, test.path, s.Name, s.SpanKind, test.name)
		}
		if s.SpanContext.TraceID().String() != callerTrace || s.Parent.SpanID().String() != callerSpan || !s.Parent.IsRemote() {
			t.Errorf("%s: trace %v below span %v, not the caller's", test.path, s.SpanContext.TraceID(), s.Parent.SpanID())
		}
		check.Equal(t, test.path+": request id", attributes["coppice.request_id"], res.Header.Get("X-Request-Id"))
		for name, want := range test.want {
			check.Equal(t, fmt.Sprintf("%s: %s", test.path, name), attributes[name], want)
		}
	}
	a.must(200, nil, request{method: "GET", path: "/healthz"})
	a.must(200, nil, request{method: "GET", path: "/metrics"})
	if all := spans.GetSpans(); len(all) > 0 {
		t.Errorf("probes are traced: %v", all)
	}
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
