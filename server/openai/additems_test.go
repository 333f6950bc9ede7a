package openai_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"

	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// TestRetryOfItemsThatAreBeingAdded holds that items are stored once where their
// request comes again, to another server, while the first still waits for the
// database, whichever of the two gets its turn first.
func TestRetryOfItemsThatAreBeingAdded(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	servers := []*api{a, a.again()}
	for name, headers := range map[string][2][]string{
		"counted":   {{retryHeader, "0"}, {retryHeader, "1"}},
		"overtaken": {{retryHeader, "1"}, {retryHeader, "0"}},
		"keyed":     {{keyHeader, "k"}, {keyHeader, "k"}},
	} {
		c := check.Must3(a.store.ForTenant("acme").CreateConversation(t.Context(), tree.NewConversation{}))(t)
		tx := check.Must(a.pool.Begin(t.Context()))(t)
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		check.Must(tx.Exec(t.Context(), "select from conversations where id = $1 for update", c.ID))(t)
		var wg sync.WaitGroup
		var got [2]string
		for i, s := range servers {
			wg.Go(func() {
				var status int
				if status, got[i], _ = s.send("acme", "POST", itemsPath(c.ID), twoItems, headers[i]...); status != 200 {
					t.Error(got[i])
				}
			})
			check.Eventually(t, "a statement that waits", func() bool { return dbtest.Waiting(t, a.pool) > i })
		}
		check.NoError(t, tx.Commit(t.Context()))
		wg.Wait()
		check.Equal(t, name+": messages", a.treeSize(c.ID), 2)
		check.Equal(t, name+": what the retry gets", got[1], got[0])
	}
}

const twoItems = `{"items":[{"role":"user","content":"hi"},{"role":"user","content":"there"}]}`

func itemsPath(conversation uuid.UUID) string {
	return "/conversations/" + wire.ConversationID(conversation) + "/items"
}

// TestItemsAddedAgain adds the same items several times. They are stored once for
// each request, which an Idempotency-Key names for good.
func TestItemsAddedAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	store := a.store.ForTenant("acme")
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	first := user(t, store, c.ID, "first")
	id, retry, key := wire.ConversationID(c.ID), []string{retryHeader, "1"}, func(k string) []string { return []string{keyHeader, k} }
	back := func() { a.setHead(c.ID, first) }
	deletes := func(at int) func() {
		return func() {
			a.tells(200, "DELETE", itemsPath(c.ID)+"/"+a.items(id, "?order=asc").Data[at].ID, "")
		}
	}
	on := func() { user(t, store, c.ID, "on") }
	for _, step := range []struct {
		does   string
		before func()
		header []string
		status int
		added  int // messages
		says   string
	}{
		{"once", nil, nil, 200, 2, "user:first user:hi user:there"},
		{"that are meant twice", nil, nil, 200, 2, "user:first user:hi user:there user:hi user:there"},
		{"where they were added before", back, nil, 200, 2, "user:first user:hi user:there"},
		{"there, by a retry whose first try never came", back, retry, 200, 2, "user:first user:hi user:there"},
		{"by its retry", nil, retry, 200, 0, "user:first user:hi user:there"},
		{"with a key", back, key("k"), 200, 2, "user:first user:hi user:there"},
		{"with another, whose first try never came", nil, slices.Concat(key("l"), retry), 200, 2, "user:first user:hi user:there user:hi user:there"},
		{"with its key again, when the branch went on", on, key("l"), 200, 0, "user:first user:hi user:there user:hi user:there user:on"},
		{"with the first key", nil, key("k"), 200, 0, "user:first user:hi user:there user:hi user:there user:on"},
		{"with a key whose items stand on another branch", back, key("k"), 200, 0, "user:first"},
		{"with a new key", nil, key("m"), 200, 2, "user:first user:hi user:there"},
		{"with it, when the last one is gone", deletes(2), key("m"), 409, 0, "user:first user:hi"},
		{"with another key", back, key("n"), 200, 2, "user:first user:hi user:there"},
		{"with it, when the first one is gone from the branch", deletes(1), key("n"), 200, 0, "user:first user:there"},
	} {
		if step.before != nil {
			step.before()
		}
		before := a.treeSize(c.ID)
		status, got, _ := a.send("acme", "POST", itemsPath(c.ID), twoItems, step.header...)
		if status != step.status || status == 409 && !strings.Contains(got, "The key was used before") {
			t.Errorf("%s: %d %s", step.does, status, got)
		}
		check.Equal(t, step.does+": messages", a.treeSize(c.ID)-before, step.added)
		check.Equal(t, step.does+": the items", a.items(id, "?order=asc").says(), step.says)
	}
}

// user appends a user's message at the end of the active branch.
func user(t *testing.T, s *tree.Store, conversation uuid.UUID, text string) uuid.UUID {
	t.Helper()
	m := check.Must(s.Append(t.Context(), conversation, uuid.Nil, tree.NewMessage{Message: chat.Read((&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart(text)}}).Encode())}, tree.AtHead()))(t)
	return m.ID
}

// TestTurnThatComesTwice holds that a turn whose response named no conversation
// is known again when its items are added, in whatever way the client writes
// them, and stands in the tree once.
func TestTurnThatComesTwice(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}
	a := newAPI(t, llmtest.Answer("Hello."), llmtest.CallTools(call), llmtest.Answer("Sunny."), llmtest.Answer("Hello."))
	const tools = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	id, native := a.conversation(`{}`)
	first := a.create(`{"model":"wood","input":"Hi","conversation":"` + id + `"}`)

	asked := a.create(`{"model":"wood","input":"Weather?","previous_response_id":"` + first.ID + `"` + tools + `}`)
	answered := a.create(`{"model":"wood","input":[{"type":"function_call_output","call_id":"call_1","output":"22"}],"previous_response_id":"` + asked.ID + `"` + tools + `}`)
	before := a.items(id, "?order=asc")
	added := a.add(id, `{"role":"user","content":[{"type":"input_text","text":"Weather?"}]},{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Rome\"}","status":"completed"},
		{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"22"}]},{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Sunny.","annotations":[],"logprobs":[]}]}`)
	if n := a.treeSize(native); n != 6 || added.Data[3].ID != answered.Output[0].ID || added.Data[1].ID != asked.Output[0].ID {
		t.Errorf("the tree has %d messages, and the items are %+v", n, added.Data)
	}
	a.shows(native, 6, before.says())

	// Of a turn that goes on, the rest is added.
	added = a.add(id, says("assistant", "Sunny.")+","+says("user", "And now?"))
	if n := a.treeSize(native); n != 7 || added.Data[0].ID != answered.Output[0].ID {
		t.Errorf("the tree has %d messages, and the items are %+v", n, added.Data)
	}

	// What a client says again, it means.
	for i := range 3 {
		a.add(id, says("user", "Ping"))
		a.add(id, says("user", "Hi")+","+says("assistant", "Hello."))
		check.Equal(t, "messages", a.treeSize(native), 10+3*i)
	}
	// So does one whose response named the conversation: it has the turn already.
	a.create(`{"model":"wood","input":"Hi","conversation":"` + id + `"}`)
	a.add(id, says("user", "Hi")+","+says("assistant", "Hello."))
	check.Equal(t, "messages", a.treeSize(native), 20)
}
