package reply

import (
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

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
