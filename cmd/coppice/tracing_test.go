package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
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
		check.That(t, err == nil && r.URL.Path == "/v1/traces" && proto.Unmarshal(body, &export) == nil,
			"%s %s: no export (%v)", r.Method, r.URL, err)
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
	check.Eventually(t, "a compaction", func() bool { return len(look(t, s.url, path).saved) > 0 })

	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path+"/branches/active/replies",
		strings.NewReader(`{"stream":true,"message":{"role":"user","content":"Where is the `+canary+`?"}}`))
	check.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
	res := check.Must(http.DefaultClient.Do(req))(t)
	events, err := io.ReadAll(res.Body)
	res.Body.Close()
	check.Need(t, err == nil && bytes.Contains(events, []byte("event: reply.completed")),
		"%v: %s", err, events)
	s.signal(t, syscall.SIGTERM) // upon which it sends what is left
	check.Equal(t, "exit code", s.wait(t), 0)

	asked := c.named("POST /v1/conversations/{conversation_id}/branches/{head_id}/replies")
	if len(asked) != 1 || fmt.Sprintf("%x %x", asked[0].TraceId, asked[0].ParentSpanId) != trace+" "+parent || "/v1/conversations/"+attribute(asked[0], "coppice.conversation_id") != path {
		t.Fatalf("the request's span: %v", asked)
	}
	stores := "AppendMessage"
	if dbtest.Shards(t) > 1 {
		stores = "InsertNode" // where a message is stored by statements of one table each
	}
	if !slices.ContainsFunc(c.below(asked[0], "batch start"), func(batch *tracepb.Span) bool { return len(c.below(batch, stores)) > 0 }) {
		t.Error("the request's statements are not below it")
	}
	replies := c.below(asked[0], "reply")
	check.That(t, len(replies) == 1 && len(c.below(replies[0], "chat gpt-4o")) == 1,
		"the reply's spans: %v", replies)
	// Of those in the background: the reply's own may have found work as well.
	compactions := slices.DeleteFunc(c.named("compaction"), func(s *tracepb.Span) bool {
		return attribute(s, "coppice.outcome") != "saved" || attribute(s, "coppice.trigger") != "append"
	})
	if len(compactions) == 0 || len(c.below(compactions[0], "chat gpt-4o-mini")) != 1 || len(compactions[0].ParentSpanId) != 0 {
		t.Fatalf("the compactions' spans: %v", compactions)
	}
	if log := s.logged(); strings.Count(log, `"trace_id":"`+trace+`"`) < 2 || !strings.Contains(log, `"trace_id":"`+fmt.Sprintf("%x", compactions[0].TraceId)) {
		t.Error("the log doesn't name the traces of a request, its reply, or a compaction")
	}
	if c.headers.Get("X-Team") != "oaks" || !strings.Contains(c.resource, `"wood"`) || !strings.Contains(c.resource, "deployment.environment.name") {
		t.Errorf("OpenTelemetry's variables don't hold: %v %s", c.headers, c.resource)
	}
	for _, secret := range []string{canary, "oaks, at some length", "sk-"} {
		check.That(t, !strings.Contains(s.logged(), secret) && !bytes.Contains(c.raw.Bytes(), []byte(secret)),
			"%q is in the traces or the log", secret)
	}
}
