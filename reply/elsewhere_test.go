package reply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// quickly saves what comes many times a second, so that tests don't wait, and
// gives no server up.
func quickly(server string) func(*Config) {
	return func(c *Config) { c.ServerID, c.SaveEvery, c.Lease = server, 5*time.Millisecond, time.Hour }
}

// Any server gives the events of a reply, with the same ids, and a reader that
// changes the server in the middle reads on.
func TestEventsOnAnotherServer(t *testing.T) {
	t.Parallel()
	pieces := make(chan llm.Delta)
	f := serve(t, quickly("a"), scripted{"m", func(_ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
		for d := range pieces {
			if err := each(d); err != nil {
				return llm.Response{}, err
			}
		}
		return llmtest.Response("A wood that is cut."), nil
	}})
	b := serveOn(t, f.pool, quickly("b"), newGate())
	id, _ := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, Messages: spoken("user", "And now?")})
	pieces <- llm.Delta{Reasoning: "They ask."}
	pieces <- llm.Delta{Content: "A wood"}
	var there *Reply
	check.Eventually(t, "the reply on the other server", func() (ok bool) {
		var err error
		there, err = b.Find(t.Context(), id, r.MessageID())
		return err == nil
	})
	if there == r || there.HeadID() != r.HeadID() {
		t.Fatal("it isn't another server's")
	}
	// The reader takes turns between the servers.
	h := &heard{}
	read := func(on *Reply, until string) {
		t.Helper()
		h.read(t, on, func() bool { return strings.HasSuffix(h.content.String(), until) })
	}
	read(there, "A wood")
	if h.started == nil || h.started.Model != "m" || len(h.started.Messages) != 1 || h.started.Messages[0].ID != r.HeadID() || h.started.Context.Usage.ContextTokens == 0 {
		t.Errorf("it started as %+v", h.started)
	}
	if h.reasoning.String() != "They ask." {
		t.Errorf("it thought %q", h.reasoning.String())
	}
	pieces <- llm.Delta{Content: " that"}
	read(r, " that")
	pieces <- llm.Delta{Content: " is cut."}
	read(there, " cut.")
	pieces <- llm.Delta{ToolCalls: json.RawMessage(`[{"index":1,"id":"b"}]`)}
	close(pieces)
	h.read(t, there, func() bool { return h.end != nil })
	if h.end.Status != StatusCompleted || textOf(t, h.end.Message) != "A wood that is cut." {
		t.Errorf("%+v", h.end)
	}
	mine := hear(t, r)
	if len(h.calls) != 1 || string(h.calls[0]) != `{"index":1,"id":"b"}` || len(mine.calls) != 1 {
		t.Errorf("pieces of calls are %s, its own server tells %s", h.calls, mine.calls)
	}
	if mine.last != h.last || mine.content.String() != h.content.String() || mine.end.Message.ID != h.end.Message.ID {
		t.Errorf("its own server tells %q", mine.content.String())
	}
}

// Any server stops a reply, in the background or not.
func TestStopOnAnotherServer(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, quickly("a"), g)
	b := serveOn(t, f.pool, quickly("b"), newGate())
	id, head := f.conversation(t)
	for _, text := range []string{"A wood", ""} {
		r := f.ask(t, Request{ConversationID: id, HeadID: head, ID: uuid.New()})
		if text != "" {
			g.pieces <- text
		}
		e, err := b.Stop(bounded(t), id, r.MessageID())
		if err != nil || e.Status != StatusStopped || textOf(t, e.Message) != text {
			t.Errorf("%+v, %v", e, err)
		}
		if mine := end(t, r); mine.Status != StatusStopped || textOf(t, mine.Message) != text {
			t.Errorf("its own server tells %+v", mine)
		}
		for range 2 {
			if e, err := b.Stop(bounded(t), id, r.MessageID()); err != nil || e.Status != StatusStopped || textOf(t, e.Message) != text {
				t.Errorf("once more: %+v, %v", e, err)
			}
		}
	}
	if len(f.rows(t)) != 0 {
		t.Errorf("left are %+v", f.rows(t))
	}
	if _, err := b.Stop(t.Context(), id, uuid.New()); !errors.Is(err, fault.NotFound) {
		t.Errorf("an id of none: %v", err)
	}
	other := serveOn(t, f.pool, quickly("b"), newGate())
	r := f.ask(t, Request{ConversationID: id, HeadID: head, ID: uuid.New()})
	if _, err := other.ForTenant("other").Stop(t.Context(), id, r.MessageID()); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	close(g.pieces)
	end(t, r)
}

// Requests of one id that come to two servers make one reply.
func TestOneIDOnTwoServers(t *testing.T) {
	t.Parallel()
	g := newGate()
	a := serve(t, quickly("a"), g)
	b := serveOn(t, a.pool, quickly("b"), g)
	id, head := a.conversation(t)
	req := Request{ConversationID: id, ID: uuid.New(), HeadID: head, Messages: spoken("user", "Why?")}
	type outcome struct {
		r       *Reply
		started bool
		err     error
	}
	outcomes := make(chan outcome, 8)
	for i := range cap(outcomes) {
		go func() {
			r, started, err := []*fixture{a, b}[i%2].Start(bounded(t), req)
			outcomes <- outcome{r, started, err}
		}()
	}
	var all []*Reply
	begun := 0
	for range cap(outcomes) {
		o := <-outcomes
		if o.err != nil {
			t.Fatal(o.err)
		}
		if o.started {
			begun++
		}
		all = append(all, o.r)
	}
	if begun != 1 {
		t.Errorf("%d replies began, want one", begun)
	}
	for _, other := range []Request{{ConversationID: id, ID: req.ID, HeadID: head}, {ConversationID: id, ID: req.ID, HeadID: head, Messages: spoken("user", "How?")}} {
		for name, s := range map[string]*fixture{"a": a, "b": b} {
			if _, _, err := s.Start(t.Context(), other); !errors.Is(err, fault.Conflict) {
				t.Errorf("%s: something else of the same id: %v", name, err)
			}
		}
	}
	<-g.asked
	select {
	case <-g.asked:
		t.Error("the model was asked twice")
	default:
	}
	g.pieces <- "Because."
	g.pieces <- " So."
	close(g.pieces)
	for _, r := range all {
		if e := end(t, r); e.Status != StatusCompleted || textOf(t, e.Message) != "Because. So." {
			t.Errorf("%+v", e)
		}
	}
	if n := a.messages(t); n != 3 {
		t.Errorf("%d messages, want the question, the request's and its answer", n)
	}
}

// A server that is about to stop doesn't tell the end of a reply that goes on
// elsewhere.
func TestCloseWhileFollowing(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, quickly("a"), g)
	b := serveOn(t, f.pool, quickly("b"), newGate())
	id, head := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, HeadID: head, ID: uuid.New()})
	there := check.Must(b.Find(t.Context(), id, r.MessageID()))(t)
	waited := make(chan error, 1)
	go func() {
		_, err := there.Wait(bounded(t))
		waited <- err
	}()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	check.NoError(t, b.Close(done))
	wantError(t, <-waited, fault.Unavailable, "shutting_down")
	if _, err := there.Next(bounded(t), LastEventID-1); !errors.Is(err, fault.Unavailable) {
		t.Errorf("a reader hears %v", err)
	}
	close(g.pieces)
	end(t, r)
}
