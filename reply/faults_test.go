package reply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// half is what the fakes that break off midway send of a text, in pieces.
func half(text string) string { return text[:len(text)/2] }

// Whatever a model does, readers get what is stored, and asking again makes a sibling.
func TestFaults(t *testing.T) {
	t.Parallel()
	const text = "A wood that is cut so that it grows again from the same roots."
	pool := dbtest.New(t)
	call := llmtest.ToolCall{ID: "call_1", Name: "look_up", Arguments: `{"word":"coppice <&>"}`}
	for name, test := range map[string]struct {
		does    llmtest.Behaviour
		timeout bool // it ends by the reply's own
		status  Status
		code    string
		stored  string // text; "" where nothing is stored
		finish  string
	}{
		"answers":             {does: llmtest.Answer(text), status: StatusCompleted, stored: text, finish: "stop"},
		"answers at length":   {does: llmtest.Answer(llmtest.Text(300_000)), status: StatusCompleted, stored: llmtest.Text(300_000), finish: "stop"},
		"is cut off":          {does: llmtest.Truncated(text), status: StatusCompleted, stored: text, finish: "length"},
		"says nothing":        {does: llmtest.Empty(), status: StatusFailed, code: "model_bad_response", finish: "stop"},
		"refuses the request": {does: llmtest.Fail(400), status: StatusFailed, code: "model_refused"},
		"is broken":           {does: llmtest.Fail(500), status: StatusFailed, code: "model_unavailable"},
		"fails midway":        {does: llmtest.FailMidway(text), status: StatusFailed, code: "model_unavailable", stored: half(text)},
		"hangs midway":        {does: llmtest.HangMidway(text), timeout: true, status: StatusFailed, code: "model_timeout", stored: half(text)},
		"never ends":          {does: llmtest.Endless(), status: StatusFailed, code: "answer_too_long", stored: "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t, test.does, llmtest.Answer("Another try."))
			f := serveOn(t, pool, func(c *Config) {
				if test.timeout {
					c.Timeout = 2 * time.Second
				}
			}, openAI(t, server))
			id, head := f.conversation(t)
			r := f.ask(t, Request{ConversationID: id, HeadID: head})
			h := hear(t, r)
			check.Need(t, h.started != nil && h.end != nil, "started %v, end %v", h.started, h.end)
			check.That(t, h.end.Status == test.status && h.end.FinishReason == test.finish,
				"status %s, finish reason %q: %v", h.end.Status, h.end.FinishReason, h.end.Err)
			if test.code != "" {
				wantError(t, h.end.Err, kindOf(test.code), test.code)
			}
			check.That(t, !strings.Contains(f.log.String(), "coppice?") && !strings.Contains(f.log.String(), "A wood"),
				"the log has text: %s", f.log)
			stored := checkStored(t, f, r, h)
			if test.stored == "…" {
				test.stored = h.content.String()
			}
			if got := textOf(t, stored); got != test.stored {
				t.Errorf("%.100q of %d bytes is stored, want %.100q of %d", got, len(got), test.stored, len(test.stored))
			}

			again := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
			index := 1
			if stored != nil {
				index = 2
			}
			if test.timeout && again.Err != nil {
				return // a slow machine
			}
			check.That(t, again.Message != nil && again.Message.Siblings == (tree.Siblings{Index: index, Count: index}) &&
				again.Message.ParentID == head,
				"the next try: %+v", again)
		})
	}

	t.Run("calls tools, and declines", func(t *testing.T) {
		t.Parallel()
		f := serveOn(t, pool, nil, openAI(t, llmtest.NewServer(t, llmtest.CallTools(call), llmtest.Refuse("I would rather not."))))
		id, head := f.conversation(t)
		r := f.ask(t, Request{ConversationID: id, HeadID: head})
		h := hear(t, r)
		check.That(t, h.end.Status == StatusCompleted && h.end.FinishReason == "tool_calls" && len(h.calls) >= 2,
			"%+v, %d pieces of calls", h.end, len(h.calls))
		m := checkStored(t, f, r, h)
		check.That(t, strings.Contains(string(m.Body), `"arguments":"{\"word\":\"coppice <&>\"}"`), "%s is stored", m.Body)
		r = f.ask(t, Request{ConversationID: id, HeadID: head})
		h = hear(t, r)
		check.That(t, h.end.Status == StatusCompleted && h.refusal.String() == "I would rather not.",
			"%+v, %q", h.end, h.refusal.String())
		checkStored(t, f, r, h)
	})
}

// checkStored holds what is stored against what a reader got.
func checkStored(t *testing.T, f *fixture, r *Reply, h *heard) *tree.Message {
	t.Helper()
	m, err := f.store.Message(t.Context(), r.ConversationID(), r.MessageID())
	if errors.Is(err, fault.NotFound) {
		check.That(t, h.end.Message == nil && strings.TrimSpace(h.content.String()) == "",
			"nothing is stored of %q", h.content.String())
		return nil
	}
	check.NoError(t, err)
	check.That(t, h.end.Message != nil && h.end.Message.ID == m.ID && string(h.end.Message.Body) == string(m.Body),
		"the end has %+v, and %s is stored", h.end.Message, m.Body)
	got := textOf(t, &m)
	check.That(t, got == h.content.String(), "%d bytes of text are stored, and a reader got %d", len(got), h.content.Len())
	stored := EndOf(m)
	check.That(t, stored.Status == h.end.Status && stored.Usage == h.end.Usage &&
		stored.FinishReason == h.end.FinishReason && codeOf(stored.Err) == codeOf(h.end.Err),
		"the metadata is %s, and the end was %+v", m.Metadata, h.end)
	return &m
}

func TestUsageAndModelAreNoted(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Answer("Yes."))
	f := serve(t, nil, openAI(t, server))
	id, head := f.conversation(t)
	warm := 0.5
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Temperature: &warm, MaxOutputTokens: 100}))
	const want = `{"reply": {"model": "gpt-4o-fake", "usage": {"prompt_tokens": 7, "completion_tokens": 2}, "status": "completed", "finish_reason": "stop"}}`
	check.That(t, e.Usage == (Usage{PromptTokens: 7, CompletionTokens: 2}) && sameMembers(string(e.Message.Metadata), want),
		"%+v, metadata %s", e.Usage, e.Message.Metadata)
	req := server.Requests()[0]
	check.That(t, req.Stream && req.Temperature != nil && *req.Temperature == warm && req.MaxCompletionTokens == 100 && len(req.Messages) == 1,
		"the model was asked %s", req.Body)
}

// A model's bug ends its reply, and nothing else.
func TestModelThatPanics(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) { panic("a bug") }})
	id, head := f.conversation(t)
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
	check.That(t, e.Status == StatusFailed && e.Err != nil && e.Message == nil && strings.Contains(f.log.String(), "a bug"),
		"%+v\n%s", e, f.log)
	check.Eventually(t, "the count of failures", func() bool { return f.Stats() == Stats{Failed: 1} })
}

// The answer is stored though the database's connections are gone, and it refuses twice.
func TestDatabaseThatBlinks(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "it takes no trigger, by which the test refuses")
	var f *fixture
	f = serve(t, nil, &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		_, err := f.pool.Exec(ctx, `
			create sequence tries;
			create function blink() returns trigger language plpgsql as $$
			begin
				if nextval('tries') < 3 then
					raise sqlstate '57P01';
				end if;
				return new;
			end $$;
			create trigger blink before insert on nodes for each row execute function blink();
			select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		if err == nil {
			_, _ = f.pool.Exec(ctx, "select pg_terminate_backend(pg_backend_pid())") // which fails
		}
		return llmtest.Response("Kept."), err
	}})
	id, head := f.conversation(t)
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
	check.That(t, e.Status == StatusCompleted && textOf(t, e.Message) == "Kept.", "%+v", e)
	var tries int
	if err := f.pool.QueryRow(t.Context(), "select last_value from tries").Scan(&tries); err != nil || tries != 3 {
		t.Errorf("the answer was stored at try %d, %v; want the third", tries, err)
	}
}
