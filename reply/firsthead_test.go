package reply

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
)

// TestHeadOfAFailedFirstTurn holds that a conversation has an active head once no
// reply is under way, however its first turn ended.
func TestHeadOfAFailedFirstTurn(t *testing.T) {
	t.Parallel()
	fails := errors.New("its model fails")
	check := func(t *testing.T, f *fixture, id, want uuid.UUID) {
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
			check(t, f, id, uuid.Nil)
			ends(f, r)
			end(t, r)
			check(t, f, id, r.HeadID())
			again := f.ask(t, Request{ConversationID: id, HeadID: r.HeadID(), HeadAtEnd: true})
			<-g.asked
			check(t, f, id, r.HeadID())
			go func() {
				g.pieces <- "Yes."
				close(g.pieces)
			}()
			if e := end(t, again); e.Message == nil || f.messages(t) != 2 {
				t.Errorf("%+v, %d messages", e, f.messages(t))
			}
			check(t, f, id, again.MessageID())
		})
	}
}

// TestEndIsToldElsewhere holds that every server tells how a reply ended of which
// nothing is stored, however short it was.
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
		if _, err := b.ForTenant("another").Find(t.Context(), id, test.r.MessageID()); !errors.Is(err, fault.NotFound) {
			t.Errorf("another tenant is told of it: %v", err)
		}
	}
	if there, err := b.Find(t.Context(), id, failed.MessageID()); err != nil || string(there.Metadata()["openai"]) != `{"a":1}` {
		t.Errorf("%v, %v", there.Metadata(), err)
	}
	check.NoError(t, a.store.Replies().Forget(t.Context(), time.Time{}, time.Now().Add(time.Minute)))
	if _, err := b.Find(t.Context(), id, failed.MessageID()); !errors.Is(err, fault.NotFound) {
		t.Errorf("after an hour: %v", err)
	}
}
