package reply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// The same id again joins the reply that runs, and later gives its answer.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, g)
	id, head := f.conversation(t)
	req := Request{ConversationID: id, HeadID: head, ID: uuid.New(), Messages: spoken("user", "And pollarding?")}
	asks := make(chan *Reply, 10)
	var began sync.WaitGroup
	for range cap(asks) {
		began.Go(func() {
			r, started, err := f.Start(t.Context(), req)
			if err != nil {
				t.Error(err)
			}
			if started {
				asks <- r
			}
		})
	}
	began.Wait()
	if len(asks) != 1 || f.Stats().Running != 1 || f.messages(t) != 2 {
		t.Fatalf("%d replies began, %d run, %d messages are stored", len(asks), f.Stats().Running, f.messages(t))
	}
	r := <-asks
	g.pieces <- "The same, "
	joined, started, err := f.Start(t.Context(), req)
	if err != nil || started || joined != r {
		t.Fatalf("%v, %v", started, err)
	}
	active := req
	active.HeadID = uuid.Nil // the active head has moved since
	if joined, started, err := f.Start(t.Context(), active); err != nil || started || joined != r {
		t.Fatalf("%v, %v", started, err)
	}
	g.pieces <- "higher up."
	close(g.pieces)
	if h := hear(t, joined); h.content.String() != "The same, higher up." {
		t.Errorf("%q", h.content.String())
	}

	elsewhere := serveOn(t, f.pool, nil, newGate()) // as after a restart
	root := uuid.Nil
	for name, test := range map[string]struct {
		change func(*Request)
		same   bool
	}{
		"same":         {func(*Request) {}, true},
		"active":       {func(r *Request) { r.HeadID = uuid.Nil }, true},
		"parent named": {func(r *Request) { r.ParentID = &head }, true},
		"spaced": {func(r *Request) {
			m := &r.Messages[0]
			m.Body = json.RawMessage(strings.ReplaceAll(string(m.Body), ":", ": "))
		}, true},
		"another head":    {func(r *Request) { r.HeadID = uuid.New() }, false},
		"another root":    {func(r *Request) { r.ParentID = &root }, false},
		"another message": {func(r *Request) { r.Messages = spoken("user", "And coppicing?") }, false},
		"another id":      {func(r *Request) { r.Messages[0].ID = uuid.New() }, false},
		"pinned":          {func(r *Request) { r.Messages[0].Pinned = true }, false},
		"with metadata":   {func(r *Request) { r.Messages[0].Metadata = json.RawMessage(`{"a":1}`) }, false},
		"of the head":     {func(r *Request) { r.Messages, r.HeadID = nil, head }, false},
		"a user's":        {func(r *Request) { r.ID, r.Messages = head, nil }, false},
	} {
		req := req
		req.Messages = slices.Clone(req.Messages)
		test.change(&req)
		for where, s := range map[string]*Service{"kept": f.Service, "stored": elsewhere.Service} {
			got, started, err := s.Start(t.Context(), req)
			switch {
			case started:
				t.Errorf("%s, %s: another reply began", name, where)
			case !test.same:
				wantError(t, err, fault.Conflict, "id_conflict")
			case err != nil:
				t.Errorf("%s, %s: %v", name, where, err)
			default:
				e := end(t, got)
				if e.Status != StatusCompleted || textOf(t, e.Message) != "The same, higher up." {
					t.Errorf("%s, %s: %+v", name, where, e)
				}
			}
		}
	}
	if n := f.messages(t); n != 3 {
		t.Errorf("%d messages are stored, want 3", n)
	}
	// Of a stored one there is only the end, and after it nothing.
	stored, err := elsewhere.Find(t.Context(), id, req.ID)
	if err != nil {
		t.Fatal(err)
	}
	events, err := stored.Next(t.Context(), 7)
	if err != nil || len(events) != 1 || events[0].ID != LastEventID || events[0].End == nil {
		t.Errorf("%+v, %v", events, err)
	}
	if _, err := stored.Next(t.Context(), LastEventID); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

// A refused request of an id refuses those that wait with it, and leaves the id
// free.
func TestRefusedTogether(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	id, head := f.conversation(t)
	answer := f.say(t, id, head, "assistant", "A wood.")
	req := Request{ConversationID: id, HeadID: answer, ID: uuid.New()}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, _, err := f.Start(t.Context(), req)
			wantError(t, err, fault.Invalid, "head_not_answerable")
		})
	}
	all.Wait()
	req.HeadID = head
	if e := end(t, f.ask(t, req)); e.Status != StatusCompleted {
		t.Errorf("%+v", e)
	}
}

// A database that fails while a full conversation is looked at is not taken for
// the limit, which a client would believe.
func TestNoRoomIsNotTheDatabasesError(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	store := tree.New(f.pool, tree.WithLimits(tree.Limits{MessagesPerConversation: 1}))
	id, _ := f.conversation(t)
	c, err := store.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	message := spoken("user", "x")
	message[0].ID = uuid.New()
	full := &Service{shared: f.shared, store: store, contexts: f.contexts}
	if err := full.checkRoom(gone, c, Request{Messages: message}); !errors.Is(err, context.Canceled) || errors.Is(err, fault.Full) {
		t.Error(err)
	}
	if err := full.checkRoom(t.Context(), c, Request{Messages: message}); !errors.Is(err, fault.Full) {
		t.Error(err)
	}
}
