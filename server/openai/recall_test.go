package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

const gatePassword = "The password of the orchard gate is wombat-42."

var searching = llmtest.ToolCall{ID: "call_r", Name: "recall", Arguments: `{"query":"password of the orchard gate"}`}

// foldUpTo folds a branch of the tenant acme up to a message.
func (a *api) foldUpTo(conversation, cutoff uuid.UUID) {
	a.t.Helper()
	check.Must(a.store.ForTenant("acme").Summaries().Add(a.t.Context(), conversation, tree.NewSummary{
		AnchorID: cutoff, Body: json.RawMessage(said("user", "A gate was spoken of.")), Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "test"},
	}))(a.t)
}

// stepsOn counts the calls of recall and the results on the branch of a message.
func (a *api) stepsOn(conversation, head uuid.UUID) (steps int) {
	a.t.Helper()
	for m, err := range a.store.ForTenant("acme").Branch(a.t.Context(), conversation, head, 0) {
		check.NoError(a.t, err)
		if reply.IsStep(m) {
			steps++
		}
	}
	return steps
}

// A client that keeps its history sees a reply with calls of recall as one answer, and goes on.
func TestRecallInCompletions(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Managed: true}, llmtest.Answer("Noted."),
		llmtest.SayAndCall("Let me look.", searching), llmtest.Answer("It is wombat-42."),
		llmtest.Answer("You are welcome."),
		llmtest.CallTools(searching), llmtest.Answer("wombat-42"))
	history := []string{said("user", gatePassword)}
	first := a.complete("acme", chatBody(store, history...))
	conversation := uuid.MustParse(first.conversation)
	a.foldUpTo(conversation, uuid.MustParse(first.head))
	history = append(history, said("assistant", "Noted."), said("user", "What was it?"))
	second := a.complete("acme", chatBody(store+`"recall":true,`, history...))
	m := chat.Read(second.Choices[0].Message)
	if m.Text() != "Let me look.\n\nIt is wombat-42." || len(m.Calls) != 0 || second.Choices[0].Finish != "stop" || second.Usage.Total <= 20 {
		t.Fatalf("%s, %+v", second.Choices[0].Message, second)
	}
	requests := a.upstream.Requests()
	check.Has(t, "the model was asked", string(requests[1].Body), `"name":"recall"`)
	check.Lacks(t, "the model was asked", string(requests[1].Body), "wombat", `"recall":true`)
	check.Has(t, "the model was given", a.prompt(), "wombat-42")
	check.Equal(t, "steps", a.stepsOn(conversation, uuid.MustParse(second.head)), 2)
	// The client sends what it saw, and is on the same branch.
	history = append(history, said("assistant", m.Text()), said("user", "Thank you."))
	third := a.complete("acme", chatBody(store, history...))
	if third.conversation != first.conversation || a.treeSize(conversation) != 8 || a.stepsOn(conversation, uuid.MustParse(third.head)) != 2 {
		t.Errorf("%d messages after %+v", a.treeSize(conversation), third)
	}
	// A regeneration, streamed, is a sibling of the first answer.
	_, streamed, header := a.send("acme", "POST", "/chat/completions", chatBody(store+`"stream":true,"recall":true,`, history[:3]...))
	check.Has(t, "streamed", streamed, `"content":"wombat-42"`)
	check.Lacks(t, "streamed", streamed, "recall", "tool_calls")
	again := uuid.MustParse(header.Get("X-Coppice-Head-Id"))
	check.Equal(t, "messages", a.treeSize(conversation), 11)
	check.Equal(t, "steps", a.stepsOn(conversation, again), 2)
}

// TestRecallInResponses holds that the calls that the server answers are no items
// of a response nor of a conversation, and that a client's own calls are.
func TestRecallInResponses(t *testing.T) {
	t.Parallel()
	weather := llmtest.ToolCall{ID: "call_w", Name: "weather", Arguments: `{}`}
	a := newAPI(t, llmtest.Answer("Noted."),
		llmtest.SayAndCall("Let me look.", searching), llmtest.Answer("It is wombat-42."),
		llmtest.CallTools(weather, searching), llmtest.Answer("wombat-42, and rain."))
	store := a.store.ForTenant("acme")
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(`{"recall":true}`)}))(t)
	named := `"conversation":"` + wire.ConversationID(c.ID) + `",`
	first := a.create(`{"model":"wood",` + named + `"input":"` + gatePassword + `"}`)
	n, _ := wire.ParseResponseID(first.ID)
	a.foldUpTo(n.Conversation, n.Node)
	streamed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood",`+named+`"input":"What was it?","stream":true}`)
	check.Lacks(t, "streamed", streamed, "function_call", "recall")
	check.Has(t, "streamed", final(streamed), `"text":"Let me look.\n\nIt is wombat-42."`)
	id := finalID(t, streamed)
	check.Has(t, "what was streamed", final(streamed), a.tells(200, "GET", "/responses/"+id, ""))
	for _, path := range []string{"/conversations/" + wire.ConversationID(c.ID) + "/items?order=asc", "/conversations/" + wire.ConversationID(c.ID) + "/items", "/responses/" + id + "/input_items"} {
		check.Lacks(t, path, a.tells(200, "GET", path, "", "What was it?"), "function_call")
	}
	// The client's call stays open beside one that the server answered.
	const tools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}],`
	third := a.create(`{"model":"wood",` + tools + `"previous_response_id":"` + id + `","recall":true,"input":"And the weather?"}`)
	check.Need(t, len(third.Output) == 1 && third.Output[0].Type == "function_call" && third.Output[0].CallID == "call_w", "%+v", third)
	fourth := a.create(`{"model":"wood",` + tools + `"previous_response_id":"` + third.ID + `","recall":true,"input":[{"type":"function_call_output","call_id":"call_w","output":"rain"}]}`)
	check.Equal(t, "the answer", fourth.Output[0].Content[0].Text, "wombat-42, and rain.")
	if got := a.prompt(); strings.Count(got, `"tool_call_id":"call_r"`) != 2 || !strings.HasSuffix(got, `{"role":"tool","content":"rain","tool_call_id":"call_w"}`) {
		t.Errorf("the model was given %s", got)
	}
	before := a.treeSize(n.Conversation)
	a.tells(400, "POST", "/responses", `{"model":"wood","recall":true,`+strings.Replace(tools, "weather", "recall", 1)+`"input":"hi"}`, "leave recall out", `"param":"tools"`)
	check.Equal(t, "messages", a.treeSize(n.Conversation), before)
	// Taken back, the answers go with the calls before them, and the inputs.
	a.ask(200, "acme", "DELETE", "/responses/"+fourth.ID, "")
	a.ask(200, "acme", "DELETE", "/responses/"+third.ID, "")
	check.Equal(t, "messages", a.treeSize(n.Conversation), before-6)
}

// TestRecallKnowsItsTurnAgain holds that items that are added to a conversation, and
// a retry that reaches another server, know a turn where calls of recall stand in it.
func TestRecallKnowsItsTurnAgain(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("Noted."), llmtest.CallTools(searching), llmtest.Answer("It is wombat-42."), llmtest.Answer("Good."))
	first := a.create(`{"model":"wood","input":"` + gatePassword + `"}`)
	n := nodeOf(t, first.ID)
	a.foldUpTo(n.Conversation, n.Node)
	body := `{"model":"wood","recall":true,"previous_response_id":"` + first.ID + `","input":"What was it?"}`
	second := a.try(body, keyHeader, "one")
	before := a.treeSize(n.Conversation)
	check.Equal(t, "the retry", a.again().try(body, keyHeader, "one"), second)
	check.Equal(t, "messages", a.treeSize(n.Conversation), before)
	turn := said("user", "What was it?") + `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is wombat-42.","annotations":[]}]}`
	a.add(wire.ConversationID(n.Conversation), turn)
	check.Equal(t, "messages", a.treeSize(n.Conversation), before)
	// A history without ids but for the first answer's goes on below the calls.
	a.create(`{"model":"wood","input":[` + said("user", gatePassword) + `,{"type":"item_reference","id":"` + first.Output[0].ID + `"},` + turn + `,` + said("user", "Well.") + `]}`)
	children := check.Must(a.store.ForTenant("acme").Children(t.Context(), n.Conversation, nodeOf(t, second).Node, tree.Paging{}))(t)
	check.Equal(t, "continuations of the answer", len(children.Data), 1)
	check.Equal(t, "messages", a.treeSize(n.Conversation), before+2)
}
