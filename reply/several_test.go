package reply

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestSeveral holds that the answers of one request run at the same time, are siblings
// below the one question, and leave the active head there; that each is stopped by itself;
// and that the same request again gives the same answers.
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
	if active := f.activeHead(t, id); active != question {
		t.Errorf("the active head is %s, want the question %s", active, question)
	}
	replies, _, err = f.StartSeveral(t.Context(), req, []string{"quick", "quick", "quick"}) // of which the stopped one is tried again
	if err != nil || end(t, replies[1]).Message.ID != quick.Message.ID || end(t, replies[2]).Message == nil || replies[2].HeadID() != question {
		t.Errorf("again: %v, %v", replies, err)
	}
}

// TestSeveralAreAllOrNone holds that where one reply of several can't begin, none does and
// the question isn't stored.
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

// TestSeveralAgain holds that where the same request comes again, an answer that is missing
// becomes a sibling of the others, though the active head has moved, and that requests which
// come at the same time give the same answers. For another number of answers it is refused.
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
				if e, err := r.Wait(t.Context()); err != nil || e.Status != StatusCompleted {
					t.Errorf("%s: %v, %v", e.Status, e.Err, err)
				}
			}
		})
	}
	all.Wait()
	if n := f.messages(t) - before; n != 3 {
		t.Errorf("%d messages are stored, want the question and two answers", n)
	}
}
