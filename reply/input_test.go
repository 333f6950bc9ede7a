package reply

import (
	"context"
	"encoding/json"
	"fmt"
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

// asked keeps what a model was asked last.
func asked(last *llm.Request) llm.Model {
	return &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
		*last = req
		return llmtest.Response("Hazel."), nil
	}}
}

// The results of several calls come in one request, and the last is answered. The
// same request again gives the same answer, and stores nothing more.
func TestSeveralMessages(t *testing.T) {
	t.Parallel()
	var last llm.Request
	f := serve(t, nil, asked(&last))
	id, user := f.conversation(t)
	calls := f.add(t, id, user, twoCalls)
	req := Request{ConversationID: id, HeadID: calls, ID: uuid.New(), Messages: bodies(result("call_2"), result("call_1"))}
	h := hear(t, f.ask(t, req))
	stored := h.started.Messages
	if h.end.Status != StatusCompleted || len(stored) != 2 || stored[0].ParentID != calls || stored[1].ParentID != stored[0].ID ||
		h.started.ParentID != stored[1].ID || h.end.Message.ParentID != stored[1].ID || f.activeHead(t, id) != h.end.Message.ID {
		t.Fatalf("%+v, %+v", h.started, h.end)
	}
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
	if n := f.messages(t); n != before {
		t.Errorf("%d messages are stored, want %d", n, before)
	}
	// A user's turn of two messages, below no message.
	root := uuid.Nil
	h = hear(t, f.ask(t, Request{ConversationID: id, ParentID: &root, KeepHead: true,
		Messages: bodies(`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"What is an ash?"}`)}))
	if h.end.Status != StatusCompleted || len(last.Messages) != 2 || f.activeHead(t, id) != req.ID {
		t.Errorf("%+v: %s", h.end, last.Messages)
	}
}

// Instructions stand first in what the model reads, have their room in the
// window, and are stored nowhere.
func TestInstructions(t *testing.T) {
	t.Parallel()
	const secret = "Speak of wulfenite & <hazel> alone."
	var last llm.Request
	f := serve(t, nil, asked(&last))
	c, _, err := f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(`{"max_context_tokens":600,"reserved_tokens":100}`)})
	check.NoError(t, err)
	head := f.say(t, c.ID, uuid.Nil, "system", "Be brief.")
	for i := range 40 {
		head = f.say(t, c.ID, head, "user", fmt.Sprintf("Message %d of some ten words about the hazel and the ash.", i))
	}
	h := hear(t, f.ask(t, Request{ConversationID: c.ID, HeadID: head, Messages: spoken("user", "And then?"), Instructions: secret}))
	first := chat.Read(last.Messages[0])
	if first.Role != chat.System || first.Text() != secret || chat.Read(last.Messages[1]).Text() != "Be brief." ||
		chat.Read(last.Messages[len(last.Messages)-1]).Text() != "And then?" {
		t.Errorf("%s", last.Messages)
	}
	cost, err := f.store.Cost(t.Context(), first)
	if err != nil || cost < 8 {
		t.Fatal(cost, err)
	}
	usage := h.started.Context.Usage
	if usage.ReservedTokens != 100+cost || usage.AvailableTokens != 500-cost || usage.ContextTokens > usage.AvailableTokens {
		t.Errorf("%+v, the instructions cost %d", usage, cost)
	}
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
	if strings.Contains(f.log.String(), "wulfenite") {
		t.Error("the log holds the instructions")
	}
}
