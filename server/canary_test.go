package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
)

// Canaries: what may be told to nobody but who may read it. The model's key is
// sent to the model alone.
const (
	canaryText = "quaggaCanary"
	canaryKey  = "sk-okapiCanary0123456789"
)

// A cage holds everything that a server told besides its good answers.
type cage struct {
	*testAPI
	secret string // of the tenant "own"
	mu     sync.Mutex
	told   map[string]string // by what told it
	spans  *tracetest.InMemoryExporter
	good   string // answers, which may tell what was said but no key
}

// check fails where a canary got out.
func (c *cage) check() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told["the log"] = c.log.String()
	spans := c.spans.GetSpans()
	c.told["a trace"] = fmt.Sprintf("%+v", spans)
	check.That(c.t, len(spans) >= 5, "%d spans", len(spans))
	check.Lacks(c.t, "the answers", c.good, canaryKey, c.secret)
	for what, said := range c.told {
		for _, canary := range []string{canaryText, canaryKey, c.secret, strings.TrimPrefix(c.secret, "cop_")[:20]} {
			if i := strings.Index(said, canary); i >= 0 {
				c.t.Errorf("%s tells %.8s…: …%s…", what, canary, said[max(i-300, 0):min(i+100, len(said))])
			}
		}
	}
}

// note keeps an answer that is an error, and metrics.
func (c *cage) note(r request, res response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := fmt.Sprintf("%s %s %d", r.method, r.path, res.StatusCode)
	switch {
	case res.StatusCode >= 400, r.path == "/metrics":
		c.told[what] += string(res.body)
	case strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		for event := range strings.SplitSeq(string(res.body), "\n\n") {
			if strings.Contains(event, "event: reply.failed") {
				event, _, _ = strings.Cut(event, `,"message":`) // which is the answer, as far as it came
				c.told[what] += event
			}
		}
	}
	h := res.Header.Clone()
	if res.StatusCode == http.StatusOK {
		h.Del("Content-Disposition") // an export's file has the conversation's title
	}
	c.told[what] += fmt.Sprint(h)
	c.good += string(res.body)
}

// visit sends a request whatever comes of it, within a time.
func (c *cage) visit(r request) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Second)
	defer cancel()
	res, err := http.DefaultTransport.RoundTrip(c.newRequest(r).WithContext(ctx))
	if err != nil {
		return // a cut answer
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		c.await(res)
	}
	c.note(r, response{Response: res, body: body})
}

// newCage gives a server whose conversations say canaryText everywhere, and
// whose models do as they are told.
func newCage(t *testing.T, does llmtest.Behaviour, changes ...func(*Config)) *cage {
	t.Helper()
	fake := llmtest.NewServer(t)
	fake.Otherwise(does)
	client, err := llm.NewOpenAI(llm.OpenAIConfig{BaseURL: fake.URL(), Model: "gpt-4o", APIKey: canaryKey, HTTPClient: fake.Client()})
	check.NoError(t, err)
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	m := llm.Instrument(client, llm.Instruments{TracerProvider: provider})
	talks := func(cfg *Config) {
		cfg.Tracing = provider
		cfg.Registry = prometheus.NewRegistry()
		cfg.Contexts, err = summarize.New(cfg.Store, summarize.Config{Logger: cfg.Logger, Tracing: provider, Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: m, Timeout: time.Second}}}})
		if err == nil {
			cfg.Replies, err = reply.New(reply.Config{Tracing: provider, Store: cfg.Store, Contexts: cfg.Contexts, Models: []llm.Model{m}, Logger: cfg.Logger, Timeout: time.Second})
		}
		check.NoError(t, err)
	}
	c := &cage{testAPI: newAPIOn(t, dbtest.New(t), append([]func(*Config){talks}, changes...)...), spans: spans, told: map[string]string{}}
	own := c.store.ForTenant("own")
	for _, name := range []string{"own", "own 2"} {
		plant(t, own, name)
	}
	plantLong(t, own, "long", 40)
	for _, statement := range []string{
		`update nodes set body = replace(replace(replace(replace(body::text, 'hazel', '@'), 'coppice', '@'), 'Plot', '@'), 'grows', '@')::json`,
		`update conversations set title = '@', metadata = '{"a":"@"}'`,
	} {
		check.Must(c.pool.Exec(t.Context(), strings.ReplaceAll(statement, "@", canaryText)))(t)
	}
	_, c.secret = c.newKey("own")
	return c
}

// everywhere visits every operation, with the key in its place and in others.
func (c *cage) everywhere() {
	c.t.Helper()
	var requests []request
	for _, r := range specRoutes(c.t) {
		for _, v := range visits[r.operation] {
			w := whose{"own", "own", canaryText}
			if r.method == http.MethodDelete {
				w.conversation = "own 2" // the other one is needed until the end
			}
			requests = append(requests, v.request(r, w, bearer(c.secret)))
			for _, header := range []string{"Basic " + c.secret, "Bearer " + c.secret + "x"} {
				misplaced := v.request(r, w, nil)
				misplaced.header["Authorization"] = header
				requests = append(requests, misplaced)
			}
		}
	}
	c.visitAll(append(requests, c.compaction()))
}

// badly sends what TestBadInput does.
func (c *cage) badly() {
	c.t.Helper()
	var requests []request
	for _, b := range slices.Concat(badBodies, badRequests, badContexts, badReplies) {
		r := request{method: b.method, path: b.path, header: map[string]string{"Authorization": "Bearer " + c.secret}}
		if r.path == "" { // one of badBodies
			r.method, r.path = http.MethodPost, appendPath
		}
		for name, value := range b.header {
			r.header[name] = value
		}
		fillIn := func(s string) string { return fill(strings.NewReplacer("{{c", "{{own", "{{d", "{{own 2").Replace(s)) }
		r.path = fillIn(r.path)
		if b.body != "" {
			r.body = fillIn(strings.NewReplacer(`"content":"x"`, `"content":"`+canaryText+`"`, `"text":"`, `"text":"`+canaryText, "And pollarding?", canaryText, `"title":"`, `"title":"`+canaryText).Replace(b.body))
		}
		requests = append(requests, r)
	}
	c.visitAll(requests)
}

func (c *cage) compaction() request {
	return request{method: "POST", path: "/v1/conversations/" + named("long").String() + "/branches/active/compactions", header: bearer(c.secret), body: `{"keep_recent_messages":4,"instructions":"` + canaryText + `"}`}
}

// visitAll sends requests side by side. Whatever is said in their heads is nobody's business.
func (c *cage) visitAll(requests []request) {
	c.t.Helper()
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for _, r := range requests {
		for _, name := range []string{"User-Agent", "X-Forwarded-For", "Cookie", "Baggage"} {
			r.header[name] = canaryText
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			c.visit(r)
		})
	}
	all.Wait()
}

// TestNothingThatWasSaidIsTold looks for what was said and for keys in the log, traces, metrics,
// errors and headers, while all goes well and while the model, the database and the keys fail.
func TestNothingThatWasSaidIsTold(t *testing.T) {
	t.Parallel()
	const text = canaryText + " again and again, and " + canaryText + " once more."
	for name, does := range map[string]llmtest.Behaviour{
		"answers": llmtest.Answer(text), "quotes the request": llmtest.Fail(400),
		"quotes text":   llmtest.FailWith(llmtest.Failure{Status: 400, Type: canaryText + "1", Code: canaryText + " 2", Message: canaryKey, NotJSON: true}),
		"sends no JSON": llmtest.Raw(200, "application/json", `{"choices":[{"message":"`+text), "fails midway": llmtest.FailMidway(text),
		"searches":    llmtest.CallTools(llmtest.ToolCall{ID: "a", Name: "recall", Arguments: `{"query":"` + canaryText + `"}`}),
		"calls badly": llmtest.CallTools(llmtest.ToolCall{ID: "a", Name: canaryText, Arguments: "x"}, llmtest.ToolCall{ID: "a", Name: canaryText}),
	} {
		t.Run("a model that "+name, func(t *testing.T) {
			t.Parallel()
			c := newCage(t, does)
			if name == "answers" { // the other faults are of the model alone
				c.everywhere()
				c.badly()
			} else {
				c.replies()
			}
			c.visit(request{method: "GET", path: "/metrics"})
			c.check()
			check.Has(t, "the log", c.log.String(), `"status":200`)
		})
	}
	for name, statements := range map[string][]string{
		"refuses":               {"alter table nodes add check (tokens < 0) not valid", "alter table conversations add check (title = '') not valid"},
		"answers with nonsense": {"alter table nodes alter column body type text", "update nodes set body = '{\"role\":' || body"},
	} {
		t.Run("a database that "+name, func(t *testing.T) {
			t.Parallel()
			c := newCage(t, llmtest.Answer(text))
			for _, statement := range statements {
				check.Must(c.pool.Exec(t.Context(), statement))(t)
			}
			c.pool.Reset()
			c.everywhere()
			c.visit(request{method: "GET", path: "/metrics"})
			c.check()
			check.Has(t, "the log", c.log.String(), `"level":"ERROR"`)
		})
	}
	t.Run("keys that can't be read", func(t *testing.T) {
		t.Parallel()
		c := newCage(t, llmtest.Answer(text), func(cfg *Config) { cfg.Keys = brokenKeys{} })
		c.everywhere()
		c.visit(request{method: "GET", path: "/metrics"})
		c.check()
	})
}

// replies asks for what a model is asked for.
func (c *cage) replies() {
	c.t.Helper()
	for _, r := range specRoutes(c.t) {
		if r.operation == "createReply" || r.operation == "createCompaction" {
			for _, v := range visits[r.operation] {
				c.visit(v.request(r, whose{"own", "own", canaryText}, bearer(c.secret)))
			}
		}
	}
	c.visit(c.compaction())
	c.visit(request{method: "GET", path: "/v1/conversations/" + named("long").String() + "/compactions", header: bearer(c.secret)})
}
