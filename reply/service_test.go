package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

func sameMembers(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func (f *fixture) activeHead(t testing.TB, conversationID uuid.UUID) uuid.UUID {
	t.Helper()
	return check.Must(f.store.Head(t.Context(), conversationID))(t)
}

func (f *fixture) messages(t testing.TB) (n int) {
	t.Helper()
	check.NoError(t, f.pool.QueryRow(t.Context(), "select count(*) from nodes").Scan(&n))
	return n
}

// With nothing set up the offline model answers, so that branches can be tried.
func TestConversationOffline(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	first := f.ask(t, Request{ConversationID: c.ID, Messages: spoken("user", "Hello & welcome")})
	h := hear(t, first)
	check.Need(t, len(h.started.Messages) == 1, "%+v", h.started)
	sent := h.started.Messages[0]
	check.Need(t, h.end.Status == StatusCompleted && strings.Contains(h.content.String(), "“Hello & welcome”") && sent.ParentID == uuid.Nil,
		"%+v: %s", h.end, h.content.String())
	check.That(t, h.started.ParentID == sent.ID && h.started.MessageID == first.MessageID() && h.started.Model == "offline" &&
		h.started.Context.Complete && h.started.Context.Counts.Tail == 1 && h.started.Context.Usage.MaxContextTokens == 128_000,
		"%+v", h.started)
	check.Equal(t, "the active head", f.activeHead(t, c.ID), first.MessageID())

	// Edit and send: a sibling of what was sent.
	root := uuid.Nil
	edited := end(t, f.ask(t, Request{ConversationID: c.ID, HeadID: first.MessageID(), Messages: spoken("user", "Good bye"), ParentID: &root}))
	check.That(t, textOf(t, edited.Message) != h.content.String() && f.activeHead(t, c.ID) == edited.Message.ID, "%+v", edited)
	m, err := f.store.Message(t.Context(), c.ID, edited.Message.ParentID)
	check.That(t, err == nil && m.Siblings == (tree.Siblings{Index: 2, Count: 2}), "%+v, %v", m, err)

	// Regenerate: a sibling of the answer, on the branch where it was.
	again := end(t, f.ask(t, Request{ConversationID: c.ID, HeadID: sent.ID}))
	check.That(t, again.Message.Siblings == (tree.Siblings{Index: 2, Count: 2}) && f.activeHead(t, c.ID) == again.Message.ID,
		"%+v", again.Message)

	// Go on, below the active head.
	more := end(t, f.ask(t, Request{ConversationID: c.ID, Messages: spoken("user", "And then?")}))
	check.That(t, more.Message.Depth == 3, "%+v", more.Message)
}

func TestStop(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, g)
	id, head := f.conversation(t)

	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	g.pieces <- "A wood "
	g.pieces <- "that "
	e, err := f.Stop(bounded(t), id, r.MessageID())
	check.Need(t, err == nil && e.Status == StatusStopped && textOf(t, e.Message) == "A wood that " && e.Err == nil,
		"%+v, %v", e, err)
	check.That(t, sameMembers(string(e.Message.Metadata), `{"reply":{"status":"stopped","model":"gate"}}`),
		"metadata %s", e.Message.Metadata)
	if h := hear(t, r); h.end.Status != StatusStopped || h.content.String() != "A wood that " || f.activeHead(t, id) != r.MessageID() {
		t.Errorf("%+v: %s; the active head is %s", h.end, h.content.String(), f.activeHead(t, id))
	}
	// Again, and of one that was completed: what became of it.
	again, err := f.Stop(bounded(t), id, r.MessageID())
	check.That(t, err == nil && again.Status == StatusStopped && again.Message.ID == r.MessageID(), "%+v, %v", again, err)

	// Before anything came: nothing is stored, and the id is free.
	named := Request{ConversationID: id, HeadID: head, ID: uuid.New()}
	r = f.ask(t, named)
	e, err = f.Stop(bounded(t), id, r.MessageID())
	check.That(t, err == nil && e.Status == StatusStopped && e.Message == nil, "%+v, %v", e, err)
	check.Fails(f.store.Message(t.Context(), id, r.MessageID()))(t, "a blank answer is stored", fault.NotFound)
	if r, err := f.Find(t.Context(), id, named.ID); err != nil || hear(t, r).end.Status != StatusStopped {
		t.Errorf("%v, %v", r, err)
	}
	r = f.ask(t, named)
	g.pieces <- "Yes."
	close(g.pieces)
	if e := end(t, r); e.Status != StatusCompleted {
		t.Errorf("%+v", e)
	}
	_, err = f.Stop(bounded(t), id, uuid.New())
	wantError(t, err, fault.NotFound, "reply_not_found")
	if _, err = f.Stop(bounded(t), uuid.New(), r.MessageID()); !errors.Is(err, fault.NotFound) {
		t.Error(err)
	}
	s := f.Stats()
	check.That(t, s == (Stats{Completed: 1, Stopped: 2}), "%+v", s)
}

// A client that goes away doesn't end its reply, and nobody takes it for stopping.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, g)
	id, head := f.conversation(t)
	ctx, leave := context.WithCancel(t.Context())
	r := check.Must3(f.Start(ctx, Request{ConversationID: id, HeadID: head}))(t)
	leave()
	for _, err := range []error{second(r.Next(ctx, 1)), second(r.Wait(ctx))} {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if r.Attend(t.Context(), true)(); r.Stopping(true) {
		t.Error("it is stopping")
	}
	g.pieces <- "Still there."
	close(g.pieces)
	e := end(t, r)
	check.That(t, e.Status == StatusCompleted && textOf(t, e.Message) == "Still there.", "%+v", e)
}

func second[T any](_ T, err error) error { return err }

// What is pruned is gone, also while it is answered, which ends the model's call.
func TestPruned(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, quickly("a"), g)
	id, head := f.conversation(t)
	other := f.say(t, id, uuid.Nil, "user", "Other")
	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	g.pieces <- "Too late"
	check.Must(f.store.Prune(t.Context(), id, head))(t)
	e := end(t, r)
	check.That(t, e.Status == StatusFailed && e.Message == nil, "%+v", e)
	wantError(t, e.Err, fault.NotFound, "message_not_found")
	// At once: what its end told is so already.
	_, err := f.Find(t.Context(), id, r.MessageID())
	wantError(t, err, fault.NotFound, "reply_not_found")

	f = serveOn(t, f.pool, nil)
	r = f.ask(t, Request{ConversationID: id, HeadID: other})
	end(t, r)
	check.Must(f.store.Prune(t.Context(), id, r.MessageID()))(t)
	_, err = f.Find(t.Context(), id, r.MessageID())
	wantError(t, err, fault.NotFound, "reply_not_found")
	// Not every message is a reply.
	_, err = f.Find(t.Context(), id, other)
	wantError(t, err, fault.NotFound, "reply_not_found")
}

// Turns at a time begin at one head, also where there is none, and the first to end moves it.
func TestHeadAtEnd(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]bool{"after a message": true, "in an empty conversation": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			f := serve(t, nil, g)
			c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
			parent := uuid.Nil
			if said {
				parent = f.say(t, c.ID, uuid.Nil, "user", "Hello")
			}
			var ends []End
			var replies []*Reply
			for _, text := range []string{"One", "Two"} {
				r := f.ask(t, Request{ConversationID: c.ID, Messages: spoken("user", text), HeadAtEnd: true, Title: "Trees"})
				<-g.asked
				if c, err := f.store.Conversation(t.Context(), c.ID); err != nil || c.HeadID != parent || said != (c.Title == "") {
					t.Errorf("while %s is answered the head is %s and the title %q, %v; want %s", text, c.HeadID, c.Title, err, parent)
				}
				replies = append(replies, r)
			}
			g.pieces <- "x"
			g.pieces <- "y"
			close(g.pieces)
			for _, r := range replies {
				e := end(t, r)
				check.Need(t, e.Message != nil, "%+v", e)
				question, err := f.store.Message(t.Context(), c.ID, e.Message.ParentID)
				check.That(t, err == nil && question.ParentID == parent,
					"the turn hangs below %s, %v; want %s", question.ParentID, err, parent)
				ends = append(ends, e)
			}
			head := f.activeHead(t, c.ID)
			check.That(t, head == ends[0].Message.ID || head == ends[1].Message.ID, "the active head is %s", head)
		})
	}
}

// A switch while the answer is stored holds. Without one the answer becomes the active head.
func TestSwitchWhileTheAnswerIsStored(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, g)
	id, head := f.conversation(t)
	other := f.say(t, id, uuid.Nil, "user", "Other")
	for _, switches := range []bool{true, false} {
		check.Must(f.store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{HeadID: head}))(t)
		r := f.ask(t, Request{ConversationID: id, HeadID: head})
		<-g.asked
		tx := check.Must(f.pool.Begin(t.Context()))(t)
		held := tree.New(tx)
		check.NoError(t, held.Lock(t.Context(), id))
		g.pieces <- "x"
		close(g.pieces)
		check.Eventually(t, "the answer waits for the conversation", func() bool { return dbtest.Waiting(t, f.pool) > 0 })
		if switches {
			check.Must(held.UpdateConversation(t.Context(), id, tree.ConversationUpdate{HeadID: other}))(t)
		}
		check.NoError(t, tx.Commit(t.Context()))
		e := end(t, r)
		want := other
		if !switches {
			want = e.Message.ID
		}
		got := f.activeHead(t, id)
		check.That(t, got == want, "switched %t: the active head is %s, want %s", switches, got, want)
		g.pieces = make(chan string)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("no store is no error")
	}
	f := serve(t, nil)
	twice := []llm.Model{&llmtest.Model{}, &llmtest.Model{}}
	if _, err := New(Config{Store: f.store, Contexts: f.contexts, Models: twice}); err == nil || !strings.Contains(err.Error(), `"fake"`) {
		t.Error(err)
	}
	if got := fmt.Sprint(f.Models()); got != "[offline]" {
		t.Error(got)
	}
}

// Stored is called once, after the commit and before the end is told: readers wait for the log's place.
func TestStoredIsCalledBeforeTheEnd(t *testing.T) {
	t.Parallel()
	var f *fixture
	called, goOn := make(chan int, 2), make(chan struct{})
	f = serve(t, func(c *Config) {
		c.Stored = func(_ context.Context, tenantID string, conversationID uuid.UUID) {
			conversation, err := f.store.ForTenant(tenantID).Conversation(context.Background(), conversationID)
			if err != nil {
				t.Error(err)
			}
			called <- conversation.MessageCount()
			<-goOn
		}
	}, llm.Offline(0))
	id, head := f.conversation(t)
	r := f.ask(t, Request{ConversationID: id, HeadID: head})
	check.Eventually(t, "a call of Stored", func() bool { return len(called) == 1 })
	check.Equal(t, "stored messages when it was called", <-called, 2)
	select {
	case <-r.ended:
		t.Error("the end is told while Stored runs")
	default:
	}
	close(goOn)
	if end(t, r); len(called) > 0 {
		t.Error("Stored is called twice")
	}
}
