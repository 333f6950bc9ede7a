package openai_test

import (
	"context"
	"encoding/json"
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

// TestRetryOfItemsThatAreBeingAdded holds that items are stored once where their request comes again,
// to another server, while the first still waits for the database.
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

// Items added again are stored once for each request, which a key names for good.
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
		check.That(t, status == step.status && (status != 409 || strings.Contains(got, "The key was used before")),
			"%s: %d %s", step.does, status, got)
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

// TestTurnThatComesTwice holds that a turn whose response named no conversation is known again when
// its items are added, however they are written, and stands in the tree once.
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
	check.Equal(t, "messages", a.treeSize(native), 7)
	check.Equal(t, "the answer", added.Data[0].ID, answered.Output[0].ID)

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

// said lists the texts of a branch, and tells how many messages the conversation has.
func (a *api) said(r response) (branch []string, count int) {
	a.t.Helper()
	n := nodeOf(a.t, r.ID)
	for m, err := range a.store.ForTenant("acme").Branch(a.t.Context(), n.Conversation, n.Node, 0) {
		check.NoError(a.t, err)
		var body struct{ Content string }
		_ = json.Unmarshal(m.Body, &body) // or parts, which no test here has
		branch = append(branch, body.Content)
	}
	return branch, a.treeSize(n.Conversation)
}

// grew holds that a response's branch has so many messages, and its conversation so many.
func (a *api) grew(r response, messages, onBranch int) (branch []string) {
	a.t.Helper()
	branch, count := a.said(r)
	check.That(a.t, count == messages && len(branch) == onBranch, "%d messages, want %d, and the branch is %.300q", count, messages, branch)
	return branch
}

// TestEchoedIDs holds that a whole history goes on at its deepest known id: no message is stored
// twice, none is lost, and another question at the same place is a branch.
func TestEchoedIDs(t *testing.T) {
	t.Parallel()
	a := newAPI(t, answersOf(12)...)
	first := a.create(`{"model":"wood","input":[{"role":"developer","content":"Mind."},{"role":"user","content":"One?"}]}`)
	answer, n := first.Output[0], nodeOf(t, first.ID)
	history := `{"role":"developer","content":"Mind."},{"role":"user","content":"One?"},`
	for name, known := range map[string]string{
		"as LangChain":      `{"type":"message","role":"assistant","id":"` + answer.ID + `","status":"completed","content":[{"type":"output_text","text":"Answer 0.","annotations":[]}]},`,
		"as the AI SDK":     `{"type":"item_reference","id":"` + answer.ID + `"},`,
		"with a foreign id": `{"type":"message","role":"assistant","id":"` + answer.ID + `","content":"Answer 0."},`,
	} {
		r := a.create(`{"model":"wood","input":[` + history + known + `{"type":"message","id":"msg_` + uuid.NewString() + `","role":"user","content":"` + name + `?"}]}`)
		branch, _ := a.said(r)
		if nodeOf(t, r.ID).Conversation != n.Conversation || len(branch) != 5 || branch[3] != name+"?" || strings.Count(a.prompt(), "One?") != 1 {
			t.Errorf("%s: %q after %s", name, branch, a.prompt())
		}
	}
	check.Equal(t, "messages", a.treeSize(n.Conversation), 3+3*2)

	// A session that is kept as items of a conversation has ids of what a user said,
	// and an answer without: it is the one that stands there.
	asked := a.message(n.Conversation.String(), n.Node.String()).ParentID
	question := wire.ItemID{NodeID: wire.NodeID{Conversation: n.Conversation, Node: asked}, Kind: wire.KindMessage, Ordinal: 1}
	said, _ := json.Marshal(answer.Content[0].Text)
	session := `{"role":"user","id":"` + question.String() + `","content":"One?"},{"role":"assistant","content":` + string(said) + `},`
	r := a.create(`{"model":"wood","input":[` + session + `{"role":"user","content":"Two?"}]}`)
	a.grew(r, 11, 5)
	// The same once more, as when an answer is asked for again: a sibling of the answer.
	again := a.create(`{"model":"wood","input":[` + session + `{"role":"user","content":"Two?"}]}`)
	if a.grew(again, 12, 5); again.ID == r.ID {
		t.Error("it is the same answer")
	}
	// Another answer than the one that stands there is what the client says it is.
	other := a.create(`{"model":"wood","input":[{"role":"user","id":"` + question.String() + `","content":"One?"},{"role":"assistant","content":"Something else."},{"role":"user","content":"Three?"}]}`)
	check.Equal(t, "the other answer", a.grew(other, 15, 5)[2], "Something else.")
	check.Lacks(t, "the model was given", a.prompt(), "Answer 0.")
	// An id of another tenant's is as none.
	theirs, _ := a.ask(200, "other", "POST", "/responses", `{"model":"wood","input":[`+session+`{"role":"user","content":"Mine?"}]}`)
	check.That(t, nodeOf(t, responseIn(t, theirs).ID).Conversation != n.Conversation && a.treeSize(n.Conversation) == 15,
		"another tenant goes on here")
	// Items without ids hide none, however many they are.
	named, native := a.conversation(`{"items":[` + says("user", "Five?") + `]}`)
	long := a.create(`{"model":"wood","input":[{"id":"` + a.items(named, "").Data[0].ID + `"}` + strings.Repeat(","+says("user", "More."), 20) + `]}`)
	check.Equal(t, "the conversation of an id above 20 items", nodeOf(t, long.ID).Conversation, native)
	// Without ids it is known by what it says, and another answer begins a branch.
	edited := a.create(`{"model":"wood","input":[` + history + `{"role":"assistant","content":"x"},{"role":"user","content":"Four?"}]}`)
	check.Equal(t, "the edited answer", a.grew(edited, 18, 5)[2], "x")
	check.Equal(t, "the conversation", nodeOf(t, edited.ID).Conversation, n.Conversation)
}
