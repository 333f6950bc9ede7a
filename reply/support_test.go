package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// A fixture is a service on a database of its own.
type fixture struct {
	*Service
	pool  *pgxpool.Pool
	store *tree.Store
	log   *check.Buffer
}

// serve makes a service whose replies come from models.
func serve(t testing.TB, change func(*Config), models ...llm.Model) *fixture {
	t.Helper()
	return serveOn(t, dbtest.New(t), change, models...)
}

func serveOn(t testing.TB, pool *pgxpool.Pool, change func(*Config), models ...llm.Model) *fixture {
	t.Helper()
	f := &fixture{pool: pool, store: tree.New(pool), log: new(check.Buffer)}
	cfg := Config{Store: f.store, Models: models, Logger: slog.New(slog.NewTextHandler(f.log, nil))}
	if change != nil {
		change(&cfg)
	}
	if cfg.Contexts == nil {
		cfg.Contexts = check.Must(summarize.New(f.store, summarize.Config{}))(t)
	}
	f.Service = check.Must(New(cfg))(t)
	t.Cleanup(func() {
		done, cancel := context.WithCancel(context.Background())
		cancel()
		if err := f.Close(done); err != nil {
			t.Error(err)
		}
	})
	return f
}

// openAI is a client of a fake server.
func openAI(t testing.TB, s *llmtest.Server) llm.Model {
	t.Helper()
	return check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: s.URL(), Model: "gpt-4o", HTTPClient: s.Client()}))(t)
}

func spoken(role, text string) []tree.NewMessage {
	return []tree.NewMessage{tree.Text(tree.Role(role), text)}
}

// conversation makes one with a user's message in it, and gives both ids.
func (f *fixture) conversation(t testing.TB) (id, head uuid.UUID) {
	t.Helper()
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	return c.ID, f.say(t, c.ID, uuid.Nil, "user", "What is a coppice?")
}

func (f *fixture) say(t testing.TB, conversationID, parentID uuid.UUID, role, text string) uuid.UUID {
	t.Helper()
	return f.add(t, conversationID, parentID, string(spoken(role, text)[0].Message.Raw))
}

func (f *fixture) add(t testing.TB, conversationID, parentID uuid.UUID, body string) uuid.UUID {
	t.Helper()
	m := check.Must(f.store.Append(t.Context(), conversationID, parentID, tree.NewMessage{Message: chat.Read([]byte(body))}))(t)
	return m.ID
}

// ask starts a reply that must start.
func (f *fixture) ask(t testing.TB, req Request) *Reply {
	t.Helper()
	r, started, err := f.Start(t.Context(), req)
	check.NoError(t, err)
	check.Need(t, started, "another reply was given")
	return r
}

// end waits for a reply's end.
func end(t testing.TB, r *Reply) End {
	t.Helper()
	return check.Must(r.Wait(bounded(t)))(t)
}

// bounded returns a context that only ends a test that hangs.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// heard is what a reader of a reply's events has got.
type heard struct {
	reasoning        strings.Builder
	content, refusal strings.Builder
	calls            []json.RawMessage
	steps            []tree.Message
	started          *Started
	end              *End
	last             int
}

// take adds events; they must grow.
func (h *heard) take(events []Event) error {
	for _, e := range events {
		if e.ID <= h.last {
			return fmt.Errorf("event %d came after event %d", e.ID, h.last)
		}
		h.last = e.ID
		switch {
		case h.end != nil:
			return errors.New("an event came after the end")
		case e.Started != nil:
			h.started = e.Started
		case e.Delta != nil:
			h.reasoning.WriteString(e.Delta.Reasoning)
			h.content.WriteString(e.Delta.Content)
			h.refusal.WriteString(e.Delta.Refusal)
			h.calls = append(h.calls, e.Delta.ToolCalls...)
		case e.Message != nil:
			h.steps = append(h.steps, *e.Message)
		case e.End != nil:
			h.end = e.End
		}
	}
	return nil
}

// hear reads a reply's events to the end.
func hear(t testing.TB, r *Reply) *heard {
	t.Helper()
	h := &heard{}
	h.read(t, r, func() bool { return h.end != nil })
	return h
}

// read takes a reply's events until something is so.
func (h *heard) read(t testing.TB, r *Reply, is func() bool) {
	t.Helper()
	for !is() {
		events, err := r.Next(bounded(t), h.last)
		if err == nil {
			err = h.take(events)
		}
		check.NoError(t, err)
	}
}

func textOf(t testing.TB, m *tree.Message) string {
	t.Helper()
	if m == nil {
		return ""
	}
	var body struct{ Content string }
	check.NoError(t, json.Unmarshal(m.Body, &body))
	return body.Content
}

func wantError(t testing.TB, err error, kind error, code string, parts ...string) {
	t.Helper()
	var own *fault.Error
	if !errors.Is(err, kind) || !errors.As(err, &own) || own.Code != code {
		t.Errorf("error %v, want %q of kind %q", err, code, kind)
		return
	}
	for _, part := range parts {
		check.That(t, strings.Contains(own.Error(), part), "the error lacks %q: %v", part, own)
	}
}

// kindOf is the kind that goes with a code of a model's fault.
func kindOf(code string) fault.Kind {
	switch code {
	case "model_rate_limited":
		return fault.ModelBusy
	case "model_timeout":
		return fault.ModelTimeout
	}
	return fault.Model
}

// gate is a model whose answer comes in pieces, as the test lets them.
type gate struct {
	name   string
	pieces chan string // closed: the answer is whole
	asked  chan llm.Request
}

func newGate() *gate {
	return &gate{name: "gate", pieces: make(chan string), asked: make(chan llm.Request, 100)}
}

func (g *gate) Name() string { return g.name }

func (g *gate) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	return g.Stream(ctx, req, func(llm.Delta) error { return nil })
}

func (g *gate) Stream(ctx context.Context, req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	g.asked <- req
	var text strings.Builder
	for {
		select {
		case piece, more := <-g.pieces:
			if !more {
				res := llmtest.Response(text.String())
				res.Model = g.name
				return res, nil
			}
			text.WriteString(piece)
			if err := each(llm.Delta{Content: piece}); err != nil {
				return llm.Response{Text: text.String()}, err
			}
		case <-ctx.Done():
			return llm.Response{Text: text.String()}, &llm.Error{Kind: llm.ErrCanceled, Model: g.name, Err: ctx.Err()}
		}
	}
}
