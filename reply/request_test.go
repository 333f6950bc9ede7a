package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
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
	check.Need(t, err == nil && !started && joined == r, "%v, %v", started, err)
	active := req
	active.HeadID = uuid.Nil // the active head has moved since
	if joined, started, err := f.Start(t.Context(), active); err != nil || started || joined != r {
		t.Fatalf("%v, %v", started, err)
	}
	g.pieces <- "higher up."
	close(g.pieces)
	h := hear(t, joined)
	check.That(t, h.content.String() == "The same, higher up.", "%q", h.content.String())

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
				check.That(t, e.Status == StatusCompleted && textOf(t, e.Message) == "The same, higher up.",
					"%s, %s: %+v", name, where, e)
			}
		}
	}
	check.Equal(t, "stored messages", f.messages(t), 3)
}

// A reply that ended with nothing stored is tried anew with its message, the active head by then.
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
			check.Need(t, e.Status == StatusCompleted && textOf(t, e.Message) == "Yes.", "%+v", e)
			check.Equal(t, "added messages", f.messages(t)-before, 1)
			sent, err := f.store.Message(t.Context(), id, e.Message.ParentID)
			for range messages - 1 {
				if err == nil {
					sent, err = f.store.Message(t.Context(), id, sent.ParentID)
				}
			}
			check.That(t, err == nil && sent.ParentID == head && f.activeHead(t, id) == e.Message.ID, "%+v, %v", sent, err)
			req.Messages = spoken("user", "Something else")
			req.ID = uuid.New()
			req.Messages[0].ID = e.Message.ParentID
			if _, _, err := f.Start(t.Context(), req); err == nil {
				t.Error("another message of a taken id is accepted")
			}
		})
	}
}

// asked keeps what a model was asked last.
func asked(last *llm.Request) llm.Model {
	return &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
		*last = req
		return llmtest.Response("Hazel."), nil
	}}
}

// Results of several calls come in one request. The same again stores nothing more.
func TestSeveralMessages(t *testing.T) {
	t.Parallel()
	var last llm.Request
	f := serve(t, nil, asked(&last))
	id, user := f.conversation(t)
	calls := f.add(t, id, user, twoCalls)
	req := Request{ConversationID: id, HeadID: calls, ID: uuid.New(), Messages: bodies(result("call_2"), result("call_1"))}
	h := hear(t, f.ask(t, req))
	stored := h.started.Messages
	check.Need(t, h.end.Status == StatusCompleted && len(stored) == 2 && stored[0].ParentID == calls && stored[1].ParentID == stored[0].ID &&
		h.started.ParentID == stored[1].ID && h.end.Message.ParentID == stored[1].ID && f.activeHead(t, id) == h.end.Message.ID,
		"%+v, %+v", h.started, h.end)
	if n := len(last.Messages); n != 4 || chat.Read(last.Messages[2]).Answers() != "call_2" || chat.Read(last.Messages[3]).Answers() != "call_1" {
		t.Errorf("%d messages: %s", n, last.Messages)
	}
	before := f.messages(t)
	if again, started, err := f.Start(t.Context(), req); err != nil || started || end(t, again).Message.ID != req.ID {
		t.Errorf("%v, %v", started, err)
	}
	for _, other := range [][]tree.NewMessage{bodies(result("call_1"), result("call_2")), req.Messages[:1], req.Messages[1:], nil} {
		_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: calls, ID: req.ID, Messages: other})
		wantError(t, err, fault.Conflict, "id_conflict")
	}
	check.Equal(t, "stored messages", f.messages(t), before)
	// A user's turn of two messages, below no message.
	root := uuid.Nil
	h = hear(t, f.ask(t, Request{ConversationID: id, ParentID: &root, KeepHead: true,
		Messages: bodies(`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"What is an ash?"}`)}))
	check.That(t, h.end.Status == StatusCompleted && len(last.Messages) == 2 && f.activeHead(t, id) == req.ID,
		"%+v: %s", h.end, last.Messages)
}

// Instructions stand first in what the model reads, have room in the window, and are stored nowhere.
func TestInstructions(t *testing.T) {
	t.Parallel()
	const secret = "Speak of wulfenite & <hazel> alone."
	var last llm.Request
	f := serve(t, nil, asked(&last))
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(`{"max_context_tokens":600,"reserved_tokens":100}`)}))(t)
	head := f.say(t, c.ID, uuid.Nil, "system", "Be brief.")
	for i := range 40 {
		head = f.say(t, c.ID, head, "user", fmt.Sprintf("Message %d of some ten words about the hazel and the ash.", i))
	}
	h := hear(t, f.ask(t, Request{ConversationID: c.ID, HeadID: head, Messages: spoken("user", "And then?"), Instructions: secret}))
	first := chat.Read(last.Messages[0])
	check.That(t, first.Role == chat.System && first.Text() == secret && chat.Read(last.Messages[1]).Text() == "Be brief." &&
		chat.Read(last.Messages[len(last.Messages)-1]).Text() == "And then?",
		"%s", last.Messages)
	cost, err := f.store.Cost(t.Context(), first)
	if err != nil || cost < 8 {
		t.Fatal(cost, err)
	}
	usage := h.started.Context.Usage
	check.That(t, usage.ReservedTokens == 100+cost && usage.AvailableTokens == 500-cost && usage.ContextTokens <= usage.AvailableTokens,
		"%+v, the instructions cost %d", usage, cost)
	// The next request has none.
	end(t, f.ask(t, Request{ConversationID: c.ID, Messages: spoken("user", "And now?")}))
	if text := fmt.Sprintf("%s", last.Messages); strings.Contains(text, "wulfenite") {
		t.Error(text)
	}
	for _, table := range []string{"nodes", "conversations", "compactions"} {
		var found int
		if err := f.pool.QueryRow(t.Context(), "select count(*) from "+table+" t where t::text like '%wulfenite%'").Scan(&found); err != nil || found > 0 {
			t.Errorf("%d rows of %s hold the instructions, %v", found, table, err)
		}
	}
	check.That(t, !strings.Contains(f.log.String(), "wulfenite"), "the log holds the instructions")
}

// The model reads the request's prompt, byte for byte, as long as it fits.
func TestPrompt(t *testing.T) {
	t.Parallel()
	var last llm.Request
	f := serve(t, nil, asked(&last))
	id, user := f.conversation(t)
	prompt := &Prompt{Messages: []json.RawMessage{json.RawMessage(`{ "content":"As the client wrote it.",  "role":"user"}`)}, Tokens: 10}
	h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt}))
	check.That(t, h.end.Status == StatusCompleted && h.end.Message.ParentID == user &&
		h.started.Context.Usage.ContextTokens == 10 && h.started.Context.Complete,
		"%+v, %+v", h.started, h.end)
	check.That(t, len(last.Messages) == 1 && string(last.Messages[0]) == string(prompt.Messages[0]),
		"the model read %s", last.Messages)
	prompt.Tokens = 100_000 // and the client allows an answer for which that leaves no room
	hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt, MaxOutputTokens: 127_000}))
	check.That(t, string(last.Messages[0]) == string(prompt.Messages[0]), "the model read %s", last.Messages)
	prompt.Tokens = 1 << 40
	hear(t, f.ask(t, Request{ConversationID: id, HeadID: user, Prompt: prompt}))
	check.That(t, !strings.Contains(string(last.Messages[0]), "As the client wrote it."),
		"in place of a prompt that doesn't fit, the model read %s", last.Messages)
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
	check.Fails(f.Find(t.Context(), r.ConversationID(), r.MessageID()))(t, "it can be found", fault.NotFound)
	ctx, leave := context.WithCancel(t.Context())
	r = check.Must(f.Ask(ctx, Request{Model: g.Name(), Prompt: prompt}))(t)
	leave()
	if e := end(t, r); e.Status != StatusStopped {
		t.Errorf("after its client left it is %+v", e)
	}
	check.Equal(t, "stored messages", f.messages(t), before)
	if _, err := f.Ask(t.Context(), Request{Model: "none", Prompt: prompt}); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// An answer that goes on with another is its sibling with both parts; the model is shown the first.
func TestContinue(t *testing.T) {
	t.Parallel()
	var asked llm.Request
	answer := func(_ context.Context, req llm.Request) (llm.Response, error) {
		asked = req
		return llmtest.Response(" that is cut."), nil
	}
	f := serve(t, func(c *Config) {
		c.Prefills = func(model string) bool { return model == "prefills" }
	}, &llmtest.Model{Answer: answer}, &llmtest.Model{ModelName: "prefills", Answer: answer})
	id, question := f.conversation(t)
	first := f.say(t, id, question, "assistant", "A wood")
	for model, last := range map[string]string{"fake": goOn, "prefills": `"A wood"`} {
		req := Request{ConversationID: id, ID: uuid.New(), HeadID: first, Continue: true, Model: model}
		h := hear(t, f.ask(t, req))
		if got := chat.Read(h.end.Message.Body).Text(); got != "A wood that is cut." || h.content.String() != got || h.end.Message.ParentID != question {
			t.Errorf("the answer is %q below %s, and %q was streamed", got, h.end.Message.ParentID, h.content.String())
		}
		check.That(t, strings.Contains(string(asked.Messages[1]), `"A wood"`) && strings.Contains(string(asked.Messages[len(asked.Messages)-1]), last) &&
			(string(asked.Extra["continue_final_message"]) == "true") == (model == "prefills"),
			"%s was given %s, %s", model, asked.Messages, asked.Extra)
		r, started, err := f.Start(t.Context(), req)
		check.That(t, err == nil && !started && r.MessageID() == req.ID, "the same request again: %v, %t, %v", r, started, err)
	}
	_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: question, Continue: true})
	wantError(t, err, fault.Invalid, "head_not_answerable", "Only an answer")
}
