package reply

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// The same id again joins the reply that runs, and later gives its answer.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, g)
	id, head := f.conversation(t)
	req := Request{ConversationID: id, HeadID: head, ID: uuid.New(), Messages: spoken("user", "And pollarding?")}
	r := f.ask(t, req)
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
			m.Message = chat.Read([]byte(strings.ReplaceAll(string(m.Message.Raw), ":", ": ")))
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
}

// A reply that ended with nothing stored is tried anew with the message that it
// brought, though that message is the active head by then.
func TestNewTryOfAMessageUnderTheActiveHead(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string]int{"one": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			down := true
			f := serve(t, nil, scripted{"m", func(_ llm.Request, each func(llm.Delta) error) (llm.Response, error) {
				if down {
					return llm.Response{}, &llm.Error{Kind: llm.ErrUnavailable, Model: "m"}
				}
				return llmtest.Response("Yes."), each(llm.Delta{Content: "Yes."})
			}})
			id, head := f.conversation(t)
			req := Request{ConversationID: id, ID: uuid.New()}
			for range messages {
				req.Messages = append(req.Messages, spoken("user", "And pollarding?")...)
			}
			if e := end(t, f.ask(t, req)); e.Status != StatusFailed || e.Message != nil {
				t.Fatalf("%+v", e)
			}
			before := f.messages(t)
			down = false
			e := end(t, f.ask(t, req))
			if e.Status != StatusCompleted || textOf(t, e.Message) != "Yes." {
				t.Fatalf("%+v", e)
			}
			if n := f.messages(t) - before; n != 1 {
				t.Errorf("%d messages were added, want the answer", n)
			}
			sent, err := f.store.Message(t.Context(), id, e.Message.ParentID)
			for range messages - 1 {
				if err == nil {
					sent, err = f.store.Message(t.Context(), id, sent.ParentID)
				}
			}
			if err != nil || sent.ParentID != head || f.activeHead(t, id) != e.Message.ID {
				t.Errorf("%+v, %v", sent, err)
			}
			req.Messages = spoken("user", "Something else")
			req.ID = uuid.New()
			req.Messages[0].ID = e.Message.ParentID
			if _, _, err := f.Start(t.Context(), req); err == nil {
				t.Error("another message of a taken id is accepted")
			}
		})
	}
}
