package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	if after := f.messages(t); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v messages were stored, before %v", after, before)
	}
	if _, err := f.Ask(t.Context(), Request{Model: "none", Prompt: prompt}); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// A model answers to its aliases.
func TestAliases(t *testing.T) {
	t.Parallel()
	var last llm.Request
	m := asked(&last)
	f := serve(t, func(c *Config) { c.Aliases = map[string]string{"gpt-5": m.Name()} }, newGate(), m)
	id, user := f.conversation(t)
	if e := end(t, f.ask(t, Request{ConversationID: id, HeadID: user, Model: "gpt-5"})); e.Status != StatusCompleted || len(last.Messages) == 0 {
		t.Errorf("%+v", e)
	}
	for _, aliases := range []map[string]string{{m.Name(): m.Name()}, {"gpt-5": "none"}, {"": m.Name()}, {"a": "gpt-5", "gpt-5": m.Name()}} {
		if _, err := New(Config{Store: f.store, Contexts: f.Service.contexts, Models: []llm.Model{m}, Aliases: aliases}); err == nil {
			t.Errorf("%v are taken", aliases)
		}
	}
}

// An upstream is a model of one request, whose provider says more than a message.
type upstream struct {
	llm.Model
	messages int // that it read
}

func (u *upstream) Stream(ctx context.Context, req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	u.messages = len(req.Messages)
	res, err := u.Model.Stream(ctx, req, each)
	res.Metadata = map[string]json.RawMessage{"provider": json.RawMessage(`{"signature":"c2ln"}`)}
	return res, err
}

// TestUpstream holds that the request's own model reads the whole prompt, whatever the
// window, and that what its provider says more stands in the answer's metadata, byte for byte.
func TestUpstream(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	id, user := f.conversation(t)
	u := &upstream{Model: asked(new(llm.Request))}
	prompt := &Prompt{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"One."}`), json.RawMessage(`{"role":"user","content":"Two."}`)}, Tokens: 1 << 40}
	h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt, Upstream: u, Metadata: map[string]json.RawMessage{"own": json.RawMessage(`{"a": "<b>"}`)}}))
	if u.messages != 2 || h.end.Message == nil || !strings.Contains(string(h.end.Message.Metadata), `"own":{"a": "<b>"},"provider":{"signature":"c2ln"}`) {
		t.Errorf("%d messages, %+v", u.messages, h.end)
	}
}
