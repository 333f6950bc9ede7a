package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

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
	if count != messages || len(branch) != onBranch {
		a.t.Errorf("%d messages, want %d, and the branch is %.300q", count, messages, branch)
	}
	return branch
}

// TestEchoedIDs holds that a client which sends its whole history goes on where the
// deepest item is that it has an id of: no message is stored twice, none is lost,
// and another question at the same place is a branch.
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
	if nodeOf(t, responseIn(t, theirs).ID).Conversation == n.Conversation || a.treeSize(n.Conversation) != 15 {
		t.Error("another tenant goes on here")
	}
	// Items without ids hide none, however many they are.
	named, native := a.conversation(`{"items":[` + says("user", "Five?") + `]}`)
	long := a.create(`{"model":"wood","input":[{"id":"` + a.items(named, "").Data[0].ID + `"}` + strings.Repeat(","+says("user", "More."), 20) + `]}`)
	check.Equal(t, "the conversation of an id above 20 items", nodeOf(t, long.ID).Conversation, native)
	// Without ids it is known by what it says, and another answer begins a branch.
	edited := a.create(`{"model":"wood","input":[` + history + `{"role":"assistant","content":"x"},{"role":"user","content":"Four?"}]}`)
	check.Equal(t, "the edited answer", a.grew(edited, 18, 5)[2], "x")
	check.Equal(t, "the conversation", nodeOf(t, edited.ID).Conversation, n.Conversation)
}
