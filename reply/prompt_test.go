package reply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
)

// The model reads the request's prompt, byte for byte, as long as it fits.
func TestPrompt(t *testing.T) {
	t.Parallel()
	var last llm.Request
	f := serve(t, nil, asked(&last))
	id, user := f.conversation(t)
	prompt := &Prompt{Messages: []json.RawMessage{json.RawMessage(`{ "content":"As the client wrote it.",  "role":"user"}`)}, Tokens: 10}
	h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt}))
	if h.end.Status != StatusCompleted || h.end.Message.ParentID != user || h.started.Context.Usage.ContextTokens != 10 || !h.started.Context.Complete {
		t.Errorf("%+v, %+v", h.started, h.end)
	}
	if len(last.Messages) != 1 || string(last.Messages[0]) != string(prompt.Messages[0]) {
		t.Errorf("the model read %s", last.Messages)
	}
	prompt.Tokens = 100_000 // and the client allows an answer for which that leaves no room
	hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt, MaxOutputTokens: 127_000}))
	if string(last.Messages[0]) != string(prompt.Messages[0]) {
		t.Errorf("the model read %s", last.Messages)
	}
	prompt.Tokens = 1 << 40
	hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt}))
	if strings.Contains(string(last.Messages[0]), "As the client wrote it.") {
		t.Errorf("in place of a prompt that doesn't fit, the model read %s", last.Messages)
	}
}

// Ask stores nothing, and ends with its client.
func TestAsk(t *testing.T) {
	t.Parallel()
	g := newGate()
	f := serve(t, nil, asked(new(llm.Request)), g)
	before := f.messages(t)
	prompt := &Prompt{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"Which trees?"}`)}, Exact: true}
	r := check.Must(f.Ask(t.Context(), Request{Prompt: prompt}))(t)
	if e := end(t, r); e.Status != StatusCompleted || !strings.Contains(string(e.Message.Body), "Hazel.") || e.Message.ConversationID != uuid.Nil {
		t.Errorf("%+v", e)
	}
	if _, err := f.Find(t.Context(), r.ConversationID(), r.MessageID()); !errors.Is(err, fault.NotFound) {
		t.Errorf("it can be found: %v", err)
	}
	ctx, leave := context.WithCancel(t.Context())
	r = check.Must(f.Ask(ctx, Request{Model: g.Name(), Prompt: prompt}))(t)
	leave()
	if e := end(t, r); e.Status != StatusStopped {
		t.Errorf("after its client left it is %+v", e)
	}
	if after := f.messages(t); after != before {
		t.Errorf("%d messages were stored, before %d", after, before)
	}
	if _, err := f.Ask(t.Context(), Request{Model: "none", Prompt: prompt}); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
