package reply

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
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
	check.That(t, f.messages(t) == before, "the refused request stored its message")

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
	check.NoError(t, <-closed)
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
	check.NoError(t, f.Close(bounded(t)))
	check.Equal(t, "the end", end(t, r).Status, StatusCompleted)
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
		check.That(t, (h.started != nil) == kept && (!kept || h.content.String() == was.content.String()) &&
			h.end.Status == StatusCompleted && h.end.Message.ID == r.MessageID(),
			"kept %t: %+v", kept, h)
	}
}

// Answers of one request run at once, as siblings, are stopped by themselves, and come again with it.
func TestSeveral(t *testing.T) {
	t.Parallel()
	slow := newGate()
	f := serve(t, nil, slow, &llmtest.Model{ModelName: "quick"})
	id, head := f.conversation(t)
	req := Request{ConversationID: id, ID: uuid.New(), Messages: spoken("user", "And a pollard?")}
	replies, started, err := f.StartSeveral(t.Context(), req, []string{"", "quick", ""})
	if err != nil || !started || len(replies) != 3 {
		t.Fatal(replies, started, err)
	}
	quick := end(t, replies[1]) // while the others run
	question := replies[0].HeadID()
	slow.pieces <- "half"
	for _, r := range []*Reply{replies[0], replies[2]} {
		check.Must(f.Stop(t.Context(), id, r.MessageID()))(t)
	}
	children := map[int]bool{}
	for i, r := range replies {
		e := end(t, r)
		switch {
		case e.Message == nil: // stopped before its first piece
		case e.Message.ParentID != question || r.HeadID() != question:
			t.Errorf("answer %d stands below %s, want %s", i, e.Message.ParentID, question)
		default:
			children[e.Message.Siblings.Index] = true
		}
	}
	if m, err := f.store.Message(t.Context(), id, question); err != nil || m.ParentID != head || m.Siblings.Count != 1 || len(children) != 2 {
		t.Errorf("the question is %+v, %v, with the answers %v", m, err, children)
	}
	check.Equal(t, "the active head", f.activeHead(t, id), question)
	replies, _, err = f.StartSeveral(t.Context(), req, []string{"quick", "quick", "quick"}) // of which the stopped one is tried again
	check.That(t, err == nil && end(t, replies[1]).Message.ID == quick.Message.ID &&
		end(t, replies[2]).Message != nil && replies[2].HeadID() == question,
		"again: %v, %v", replies, err)
}

// Where one reply of several can't begin, none does and the question isn't stored.
func TestSeveralAreAllOrNone(t *testing.T) {
	t.Parallel()
	f := serve(t, func(c *Config) { c.MaxPerTenant = 2 })
	id, _ := f.conversation(t)
	before := f.messages(t)
	for _, c := range []struct {
		kind   fault.Kind
		code   string
		models []string
	}{
		{fault.TooMany, "too_many_replies", []string{"", "", ""}},
		{fault.Invalid, "unknown_model", []string{"", "nobody"}},
		{fault.Invalid, "invalid_parameter", []string{""}},
	} {
		_, _, err := f.StartSeveral(t.Context(), Request{ConversationID: id, Messages: spoken("user", "x")}, c.models)
		wantError(t, err, c.kind, c.code)
	}
	if f.messages(t) != before || f.Stats() != (Stats{}) {
		t.Errorf("%d messages, %+v", f.messages(t)-before, f.Stats())
	}
}

// The same request again brings the missing answer, as a sibling, and once. Another number is refused.
func TestSeveralAgain(t *testing.T) {
	t.Parallel()
	fails := &llmtest.Model{ModelName: "fails", Answer: func(context.Context, llm.Request) (llm.Response, error) {
		return llm.Response{}, fault.New(fault.Model, "model_refused", "", "No.")
	}}
	f := serve(t, nil, &llmtest.Model{}, fails)
	id, head := f.conversation(t)
	req := Request{ConversationID: id, ID: uuid.New()}
	replies, _, err := f.StartSeveral(t.Context(), req, []string{"", "fails"})
	check.NoError(t, err)
	kept, failed := end(t, replies[0]), end(t, replies[1])
	if _, err := f.store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{HeadID: kept.Message.ID}); err != nil || failed.Status != StatusFailed {
		t.Fatal(failed, err)
	}
	if replies, _, err = f.StartSeveral(t.Context(), req, []string{"", ""}); err != nil || replies[1].HeadID() != head {
		t.Fatalf("again: %v, %v", replies, err)
	}
	end(t, replies[1])
	_, _, err = f.StartSeveral(t.Context(), req, []string{"", "", ""})
	wantError(t, err, fault.Conflict, "id_conflict")
	_, _, err = f.Start(t.Context(), req)
	wantError(t, err, fault.Conflict, "id_conflict")

	req = Request{ConversationID: id, ID: uuid.New(), Messages: spoken("user", "And a pollard?")}
	before := f.messages(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			replies, _, err := f.StartSeveral(t.Context(), req, []string{"", ""})
			if err != nil {
				t.Error(err)
				return
			}
			for _, r := range replies {
				e, err := r.Wait(t.Context())
				check.That(t, err == nil && e.Status == StatusCompleted, "%s: %v, %v", e.Status, e.Err, err)
			}
		})
	}
	all.Wait()
	check.Equal(t, "stored messages", f.messages(t)-before, 3)
}
