package reply

import (
	"context"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestCaps(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, func(c *Config) { c.MaxRunning, c.MaxPerTenant = 3, 2 }, g)
	id, head := f.conversation(t)
	req := Request{ConversationID: id, HeadID: head}
	first := f.ask(t, req)
	f.ask(t, req)
	before := f.messages(t)
	_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: head, Messages: spoken("user", "x")})
	wantError(t, err, fault.TooMany, "too_many_replies", "Your 2 replies")
	if f.messages(t) != before {
		t.Error("the refused request stored its message")
	}

	theirs := &fixture{Service: f.ForTenant("other"), store: f.store.ForTenant("other"), pool: f.pool}
	their, theirHead := theirs.conversation(t)
	theirs.ask(t, Request{ConversationID: their, HeadID: theirHead})
	_, _, err = theirs.Start(t.Context(), Request{ConversationID: their, HeadID: theirHead})
	wantError(t, err, fault.TooMany, "too_many_replies", "The server's 3 replies")
	check.Must(f.Stop(bounded(t), id, first.MessageID()))(t)
	// There is room as soon as its end is told.
	for range 10 {
		r := f.ask(t, req)
		check.Must(f.Stop(bounded(t), id, r.MessageID()))(t)
	}
}

// Close waits as long as it may, and then stores what there is.
func TestClose(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, g)
	id, head := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	g.pieces <- "Half "
	hurry, stop := context.WithCancel(t.Context())
	closed := make(chan error)
	go func() { closed <- f.Close(hurry) }()
	check.Eventually(t, "the end to begin", func() bool {
		f.hub.mu.Lock()
		defer f.hub.mu.Unlock()
		return f.hub.closed
	})
	_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: head})
	wantError(t, err, fault.Unavailable, "shutting_down")
	g.pieces <- "an answer"
	stop()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if e := end(t, r); e.Status != StatusStopped || textOf(t, e.Message) != "Half an answer" {
		t.Errorf("%+v", e)
	}
	// What ended by itself is waited for.
	f = serveOn(t, f.pool, nil, g)
	r = f.ask(t, Request{ConversationID: id, HeadID: head})
	go func() {
		g.pieces <- "Whole."
		close(g.pieces)
	}()
	if err := f.Close(bounded(t)); err != nil {
		t.Error(err)
	}
	if e := end(t, r); e.Status != StatusCompleted {
		t.Errorf("%+v", e)
	}
}

// Events are kept for a while; then what is stored must do.
func TestKeptEvents(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	id, head := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	was := hear(t, r)
	for _, kept := range []bool{true, false} {
		if !kept {
			f.sweep(t, watch{}, time.Now().Add(DefaultKeep+time.Second))
		}
		found := check.Must(f.Find(t.Context(), id, r.MessageID()))(t)
		h := hear(t, found)
		if (h.started != nil) != kept || kept && h.content.String() != was.content.String() || h.end.Status != StatusCompleted || h.end.Message.ID != r.MessageID() {
			t.Errorf("kept %t: %+v", kept, h)
		}
	}
}
