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
	"github.com/coppice-chat/coppice/tree"
)

// byHand saves nothing by the clock: a test calls save.
func byHand(server string) func(*Config) {
	return func(c *Config) { c.ServerID, c.SaveEvery, c.Lease = server, time.Hour, time.Minute }
}

// rows are those of the replies that run.
func (f *fixture) rows(t testing.TB) []tree.Reply {
	t.Helper()
	return check.Must(f.store.Replies().All(t.Context()))(t)
}

// running starts a reply, of which a piece has come and is saved.
func (f *fixture) running(t testing.TB, g *gate, req Request, text string) *Reply {
	t.Helper()
	r := f.ask(t, req)
	g.pieces <- text
	check.Eventually(t, "the piece", func() bool { content, _ := r.text(); return content == text })
	f.save(r)
	return r
}

func (f *fixture) sweep(t testing.TB, w watch, now time.Time) {
	t.Helper()
	check.NoError(t, f.recoverOnce(t.Context(), w, now))
}

func noteOf(t testing.TB, m tree.Message) (n note) {
	t.Helper()
	var metadata struct{ Reply note }
	check.NoError(t, json.Unmarshal(m.Metadata, &metadata))
	return metadata.Reply
}

// A silent server's answer is stored by another one, once. Alive after all, it does no harm.
func TestInterruptedAnswer(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, byHand("a"), g)
	id, head := f.conversation(t)
	r := f.running(t, g, Request{ConversationID: id, HeadID: head}, "A wood that is <cut>")
	b, c := serveOn(t, f.pool, byHand("b"), newGate()), serveOn(t, f.pool, byHand("c"), newGate())
	start := time.Now()
	f.sweep(t, watch{}, start.Add(time.Hour)) // its own, which runs
	w := watch{}
	b.sweep(t, w, start)
	b.sweep(t, w, start.Add(59*time.Second))
	f.save(r) // a sign of life
	b.sweep(t, w, start.Add(2*time.Minute))
	if n := f.messages(t); n != 1 {
		t.Fatalf("%d messages: the answer of a server that lives was stored", n)
	}
	b.sweep(t, w, start.Add(3*time.Minute))
	c.sweep(t, watch{}, start.Add(3*time.Minute))
	m, err := f.store.Message(t.Context(), id, r.MessageID())
	check.Need(t, err == nil && textOf(t, &m) == "A wood that is <cut>" && m.ParentID == head && f.activeHead(t, id) == m.ID,
		"%+v, %v", m, err)
	if n := noteOf(t, m); n != (note{Status: StatusStopped, Model: "gate", FinishReason: FinishInterrupted}) {
		t.Errorf("%+v", n)
	}
	if len(f.rows(t)) != 0 {
		t.Errorf("left are %+v", f.rows(t))
	}
	// Found by its id.
	found := check.Must(b.Find(t.Context(), id, r.MessageID()))(t)
	if e := end(t, found); e.Status != StatusStopped || e.FinishReason != FinishInterrupted {
		t.Errorf("%+v", e)
	}
	// The server that was taken for dead comes to the end of its answer, and tells
	// what was told.
	f.save(r)
	close(g.pieces)
	if e := end(t, r); e.Status != StatusStopped || e.FinishReason != FinishInterrupted || e.Message == nil || textOf(t, e.Message) != "A wood that is <cut>" {
		t.Errorf("%+v", e)
	}
	b.sweep(t, watch{}, start)
	b.sweep(t, w, start.Add(time.Hour))
	b.sweep(t, w, start.Add(2*time.Hour))
	if n := f.messages(t); n != 2 || len(f.rows(t)) != 0 {
		t.Errorf("%d messages and %+v", n, f.rows(t))
	}
	check.That(t, !strings.Contains(f.log.String()+b.log.String(), "wood"), "the log has text")
}

// quickly saves many times a second, so that tests don't wait, and gives no server up.
func quickly(server string) func(*Config) {
	return func(c *Config) { c.ServerID, c.SaveEvery, c.Lease = server, 5*time.Millisecond, time.Hour }
}

// Any server gives a reply's events with the same ids, and a reader may change the server midway.
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
	check.Need(t, there != r && there.HeadID() == r.HeadID(), "it isn't another server's")
	// The reader takes turns between the servers.
	h := &heard{}
	read := func(on *Reply, until string) {
		t.Helper()
		h.read(t, on, func() bool { return strings.HasSuffix(h.content.String(), until) })
	}
	read(there, "A wood")
	check.That(t, h.started != nil && h.started.Model == "m" && len(h.started.Messages) == 1 &&
		h.started.Messages[0].ID == r.HeadID() && h.started.Context.Usage.ContextTokens != 0,
		"it started as %+v", h.started)
	check.That(t, h.reasoning.String() == "They ask.", "it thought %q", h.reasoning.String())
	pieces <- llm.Delta{Content: " that"}
	read(r, " that")
	pieces <- llm.Delta{Content: " is cut."}
	read(there, " cut.")
	pieces <- llm.Delta{ToolCalls: json.RawMessage(`[{"index":1,"id":"b"}]`)}
	close(pieces)
	h.read(t, there, func() bool { return h.end != nil })
	check.That(t, h.end.Status == StatusCompleted && textOf(t, h.end.Message) == "A wood that is cut.", "%+v", h.end)
	mine := hear(t, r)
	check.That(t, len(h.calls) == 1 && string(h.calls[0]) == `{"index":1,"id":"b"}` && len(mine.calls) == 1,
		"pieces of calls are %s, its own server tells %s", h.calls, mine.calls)
	check.That(t, mine.last == h.last && mine.content.String() == h.content.String() && mine.end.Message.ID == h.end.Message.ID,
		"its own server tells %q", mine.content.String())
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
		check.That(t, err == nil && e.Status == StatusStopped && textOf(t, e.Message) == text, "%+v, %v", e, err)
		mine := end(t, r)
		check.That(t, mine.Status == StatusStopped && textOf(t, mine.Message) == text, "its own server tells %+v", mine)
		for range 2 {
			if e, err := b.Stop(bounded(t), id, r.MessageID()); err != nil || e.Status != StatusStopped || textOf(t, e.Message) != text {
				t.Errorf("once more: %+v, %v", e, err)
			}
		}
	}
	if len(f.rows(t)) != 0 {
		t.Errorf("left are %+v", f.rows(t))
	}
	check.Fails(b.Stop(t.Context(), id, uuid.New()))(t, "an id of none", fault.NotFound)
	other := serveOn(t, f.pool, quickly("b"), newGate())
	r := f.ask(t, Request{ConversationID: id, HeadID: head, ID: uuid.New()})
	check.Fails(other.ForTenant("other").Stop(t.Context(), id, r.MessageID()))(t, "another tenant's", fault.NotFound)
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
	check.That(t, begun == 1, "%d replies began, want one", begun)
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
		e := end(t, r)
		check.That(t, e.Status == StatusCompleted && textOf(t, e.Message) == "Because. So.", "%+v", e)
	}
	check.Equal(t, "messages", a.messages(t), 3)
}

// A server that is about to stop doesn't tell the end of a reply that goes on elsewhere.
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

// A conversation has a head once no reply is under way, however its first turn ended.
func TestHeadOfAFailedFirstTurn(t *testing.T) {
	t.Parallel()
	fails := errors.New("its model fails")
	headIs := func(t *testing.T, f *fixture, id, want uuid.UUID) {
		t.Helper()
		if c, err := f.store.Conversation(t.Context(), id); err != nil || c.HeadID != want {
			t.Errorf("the active head is %s, %v; want %s", c.HeadID, err, want)
		}
	}
	for name, ends := range map[string]func(*fixture, *Reply){
		"failed":  func(_ *fixture, r *Reply) { r.cancel(fails) },
		"stopped": func(_ *fixture, r *Reply) { r.cancel(errStopped) },
		"killed, and wakes": func(f *fixture, r *Reply) {
			b, w := serveOn(t, f.pool, byHand("b"), newGate()), watch{}
			b.sweep(t, w, time.Now())
			b.sweep(t, w, time.Now().Add(time.Hour))
			if c, err := f.store.Conversation(t.Context(), r.ConversationID()); err != nil || c.HeadID != r.HeadID() {
				t.Errorf("the active head is %s, %v", c.HeadID, err)
			}
			r.cancel(fails)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			f := serve(t, byHand("a"), g)
			id := f.empty(t, "")
			r := f.ask(t, Request{ConversationID: id, Messages: spoken("user", "One"), HeadAtEnd: true})
			<-g.asked
			headIs(t, f, id, uuid.Nil)
			ends(f, r)
			end(t, r)
			headIs(t, f, id, r.HeadID())
			again := f.ask(t, Request{ConversationID: id, HeadID: r.HeadID(), HeadAtEnd: true})
			<-g.asked
			headIs(t, f, id, r.HeadID())
			go func() {
				g.pieces <- "Yes."
				close(g.pieces)
			}()
			if e := end(t, again); e.Message == nil || f.messages(t) != 2 {
				t.Errorf("%+v, %d messages", e, f.messages(t))
			}
			headIs(t, f, id, again.MessageID())
		})
	}
}

// Every server tells how a reply ended of which nothing is stored, however short it was.
func TestEndIsToldElsewhere(t *testing.T) {
	t.Parallel()
	g := newGate()
	a := serve(t, byHand("a"), scripted{"broken", func(llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Kind: llm.ErrRateLimited, Model: "broken"}
	}}, g)
	b := serveOn(t, a.pool, byHand("b"), newGate())
	id, head := a.conversation(t)
	failed := a.ask(t, Request{ConversationID: id, HeadID: head, Metadata: map[string]json.RawMessage{"openai": json.RawMessage(`{"a":1}`)}})
	stopped := a.ask(t, Request{ConversationID: id, HeadID: head, Model: "gate"})
	<-g.asked
	stopped.cancel(errStopped)
	for _, test := range []struct {
		r      *Reply
		status Status
		code   string
	}{{failed, StatusFailed, "model_rate_limited"}, {stopped, StatusStopped, ""}} {
		end(t, test.r)
		there := check.Must(b.Find(t.Context(), id, test.r.MessageID()))(t)
		e := end(t, there)
		if e.Status != test.status || codeOf(e.Err) != test.code || e.Message != nil || e.HeadID != head || there.HeadID() != head {
			t.Errorf("another server tells %+v of %s", e, there.HeadID())
		}
		check.Fails(b.ForTenant("another").Find(t.Context(), id, test.r.MessageID()))(t, "another tenant is told of it", fault.NotFound)
	}
	if there, err := b.Find(t.Context(), id, failed.MessageID()); err != nil || string(there.Metadata()["openai"]) != `{"a":1}` {
		t.Errorf("%v, %v", there.Metadata(), err)
	}
	check.NoError(t, a.store.Replies().Forget(t.Context(), time.Time{}, time.Now().Add(time.Minute)))
	check.Fails(b.Find(t.Context(), id, failed.MessageID()))(t, "after an hour", fault.NotFound)
}
