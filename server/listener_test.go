package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// withModels has replies come from models, and changes the rest.
func withModels(change func(*reply.Config), models ...llm.Model) func(*Config) {
	return func(cfg *Config) {
		contexts, err := summarize.New(cfg.Store, summarize.Config{})
		r := reply.Config{Store: cfg.Store, Contexts: contexts, Models: models, Logger: cfg.Logger}
		if change != nil {
			change(&r)
		}
		if cfg.Contexts = contexts; err == nil {
			cfg.Replies, err = reply.New(r)
		}
		if err != nil {
			panic(err)
		}
	}
}

// model is a client of a fake server.
func model(t testing.TB, s *llmtest.Server) llm.Model {
	t.Helper()
	return check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "gpt-4o", HTTPClient: s.Client()}))(t)
}

// A paced model answers in pieces, as the test lets them.
type paced struct{ pieces chan string }

func (paced) Name() string { return "paced" }

func (p paced) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	return p.Stream(ctx, req, func(llm.Delta) error { return nil })
}

func (p paced) Stream(ctx context.Context, _ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	var text strings.Builder
	for {
		select {
		case piece, more := <-p.pieces:
			if !more {
				return llmtest.Response(text.String()), nil
			}
			text.WriteString(piece)
			if err := each(llm.Delta{Content: piece}); err != nil {
				return llm.Response{}, err
			}
		case <-ctx.Done():
			return llm.Response{}, &llm.Error{Kind: llm.ErrCanceled, Model: p.Name(), Err: ctx.Err()}
		}
	}
}

// A serverEvent is one as a client reads it.
type serverEvent struct {
	id, name, data string
}

// readEvent reads the next event the way the HTML standard says, or comments'
// text under the name "comment".
func readEvent(r *bufio.Reader) (e serverEvent, err error) {
	var data []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && e.name != "":
			e.data = strings.Join(data, "\n")
			return e, nil
		case line == "":
		case field == "":
			e.name, data = "comment", append(data, value)
		case field == "id":
			e.id = value
		case field == "event":
			e.name = value
		case field == "data":
			data = append(data, value)
		default:
			return e, fmt.Errorf("an odd line: %q", line)
		}
	}
}

// A listener reads a stream of events.
type listener struct {
	*testAPI
	res  *http.Response
	body *bufio.Reader
	last int // id
	text string
	end  *serverEvent
}

// streamed is the request with a stream as the answer it asks for.
func streamed(r request) request {
	body, _ := r.body.(string)
	if body == "" {
		body = "{}"
	}
	r.body = strings.Replace(`{"stream":true,`+strings.TrimPrefix(body, "{"), ",}", "}", 1)
	return r
}

// listen sends a request that is answered by events.
func (a *testAPI) listen(ctx context.Context, r request) *listener {
	a.t.Helper()
	if r.method == http.MethodPost {
		r = streamed(r)
	}
	res := check.Must(http.DefaultTransport.RoundTrip(a.newRequest(r).WithContext(ctx)))(a.t)
	a.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		a.t.Fatalf("%s %s: %d: %s", r.method, r.path, res.StatusCode, body)
	}
	return &listener{testAPI: a, res: res, body: bufio.NewReader(res.Body)}
}

// next reads an event and holds it against openapi.yaml.
func (l *listener) next() (serverEvent, error) {
	l.t.Helper()
	e, err := readEvent(l.body)
	if err != nil || e.name == "comment" {
		return e, err
	}
	if e.name != "stream.closed" { // which is none of the reply's, and so not where a reader left off
		id, err := strconv.Atoi(e.id)
		check.That(l.t, err == nil && id > l.last, "event %q came after event %d", e.id, l.last)
		l.last = id
	}
	conformsEvent(l.t, e)
	switch e.name {
	case "reply.started", "reply.message":
	case "reply.reasoning":
		var d struct{ Reasoning string }
		check.JSON(l.t, e.data, &d)
		check.Equal(l.t, "that a thought is empty", d.Reasoning == "", false)
	case "reply.delta":
		var d struct{ Content string }
		check.JSON(l.t, e.data, &d)
		l.text += d.Content
	default:
		l.end = &e
	}
	return e, nil
}

// bounded ends a stream that is read for too long: one that never ends by
// itself then fails its test, and not the package by its timeout.
func (l *listener) bounded() *time.Timer {
	return time.AfterFunc(time.Minute, func() { l.res.Body.Close() })
}

// toEnd reads to the end of the stream, which must come after the reply's.
func (l *listener) toEnd() serverEvent {
	l.t.Helper()
	defer l.bounded().Stop()
	for {
		_, err := l.next()
		if errors.Is(err, io.EOF) && l.end != nil {
			return *l.end
		}
		check.Need(l.t, err == nil, "the stream ended with %v after %q", err, l.text)
	}
}

// until reads until the text has so many bytes.
func (l *listener) until(n int) {
	l.t.Helper()
	defer l.bounded().Stop()
	for len(l.text) < n {
		if _, err := l.next(); err != nil {
			l.t.Fatalf("the stream ended with %v after %q", err, l.text)
		}
	}
}

var document = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(Spec) })

func conformsEvent(t testing.TB, e serverEvent) {
	t.Helper()
	doc, event := check.Must(document())(t), check.Must(e.decoded())(t)
	schema := "WatchEvent"
	if strings.HasPrefix(e.name, "reply.") && e.name != "reply.running" && e.name != "reply.ended" {
		schema = "ReplyEvent"
	}
	check.NoError(t, doc.Components.Schemas[schema].Value.VisitJSON(event))
}

// decoded is the event as the schema ReplyEvent describes it.
func (e serverEvent) decoded() (map[string]any, error) {
	event := map[string]any{"event": e.name}
	if e.id != "" {
		event["id"] = e.id
	}
	var data any
	err := json.Unmarshal([]byte(e.data), &data)
	event["data"] = data
	return event, err
}

// decodeEvents holds each event of a stream against its schema, and gives the
// last one.
func decodeEvents(body io.Reader, _ http.Header, schema *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	var last map[string]any
	for r := bufio.NewReader(body); ; {
		e, err := readEvent(r)
		switch {
		case errors.Is(err, io.EOF) && last != nil:
			return last, nil
		case err != nil:
			return nil, err
		case e.name == "comment":
			continue
		}
		if last, err = e.decoded(); err == nil {
			err = schema.Value.VisitJSON(last)
		}
		if err != nil {
			return nil, err
		}
	}
}

// stored reads the message that a reply's end is about.
func (l *listener) stored() (m struct {
	ID, ConversationID uuid.UUID
	Content            string
	Metadata           struct{ Reply struct{ Status, Code string } }
	Siblings           tree.Siblings
}) {
	l.t.Helper()
	var end struct{ Message json.RawMessage }
	check.NoError(l.t, json.Unmarshal([]byte(l.end.data), &end))
	if string(end.Message) == "null" {
		return m
	}
	check.NoError(l.t, json.Unmarshal(end.Message, &m))
	got := l.must(200, nil, request{method: "GET", path: conversationPath(l.conversation()) + "/messages/" + m.ID.String()})
	check.Equal(l.t, "what is stored, beside the event", string(got.body), string(end.Message))
	return m
}

func (l *listener) conversation() uuid.UUID {
	return uuid.MustParse(strings.Split(l.res.Request.URL.Path, "/")[3])
}
