package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A scripting model gives one answer after the other, and keeps its requests.
func scripting(answers ...llm.Response) *llmtest.Model {
	next := 0
	return &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		if next++; next > len(answers) {
			return llm.Response{}, fmt.Errorf("request %d has no answer", next)
		}
		return answers[next-1], nil
	}}
}

func recalls(id, query string) llmtest.ToolCall {
	arguments, _ := json.Marshal(map[string]string{"query": query})
	return llmtest.ToolCall{ID: id, Name: "recall", Arguments: string(arguments)}
}

// sayingToo gives an answer that calls tools a text, too.
func sayingToo(text string, res llm.Response) llm.Response {
	res.Text = text
	res.Message = withCalls(res.Message, text, "", callsOf(res.Message))
	return res
}

func callsOf(message json.RawMessage) []json.RawMessage {
	_, calls := split(message, nil)
	return calls
}

func costing(prompt, completion int, res llm.Response) llm.Response {
	res.PromptTokens, res.CompletionTokens, res.CachedTokens = prompt, completion, prompt/2
	return res
}

const (
	siblingSecret = "The password of the orchard gate is quokka-71."
	branchSecret  = "The password of the orchard gate is wombat-42."
)

// folded makes a branch that is folded but for its last question, with a secret, and a branch beside it with another.
func (f *fixture) folded(t testing.TB, settings string) (id, head uuid.UUID) {
	t.Helper()
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(settings)}))(t)
	at := f.say(t, c.ID, uuid.Nil, "user", "Let us speak of the orchard gate.")
	fork := f.say(t, c.ID, at, "assistant", "Gladly. What of the gate?")
	beside := f.say(t, c.ID, fork, "user", siblingSecret)
	f.say(t, c.ID, beside, "assistant", "I keep the password of the orchard gate, quokka-71, in mind.")
	at = f.say(t, c.ID, fork, "user", branchSecret)
	for i := range 6 {
		at = f.say(t, c.ID, at, []string{"assistant", "user"}[i%2], fmt.Sprintf("Tree %d is an apple tree, and stands by the wall.", i))
	}
	cutoff := f.say(t, c.ID, at, "assistant", "So many trees.")
	check.Must(f.store.Summaries().Add(t.Context(), c.ID, tree.NewSummary{
		AnchorID: cutoff, Body: spoken("user", "They spoke of an orchard.")[0].Message.Raw, Range: tree.SummaryRange{LastSummarizedID: cutoff, Model: "test"},
	}))(t)
	return c.ID, f.say(t, c.ID, cutoff, "user", "What is the gate's password?")
}

const withRecall = `{"recall":true}`

func (f *fixture) branch(t testing.TB, id, head uuid.UUID) (all []tree.Message) {
	t.Helper()
	for m, err := range f.store.Branch(t.Context(), id, head, 0) {
		check.NoError(t, err)
		all = append(all, m)
	}
	return all
}

// checkCalls fails at a result without its call right above, or a call without its result below.
func checkCalls(t testing.TB, messages []json.RawMessage) {
	t.Helper()
	open := map[string]bool{}
	for i, raw := range messages {
		m, err := chat.Parse(raw)
		check.Need(t, err == nil, "message %d, %s: %v", i, raw, err)
		if m.Role == chat.Tool {
			check.That(t, open[m.Answers()], "message %d answers no open call: %s", i, raw)
			delete(open, m.Answers())
			continue
		}
		check.That(t, len(open) == 0, "before message %d calls are open: %v", i, open)
		for _, call := range m.Calls {
			open[call.ID] = true
		}
	}
}

func contextOf(t testing.TB, f *fixture, id, head uuid.UUID, says bool) []json.RawMessage {
	t.Helper()
	c := check.Must(f.contexts.Context(t.Context(), id, head, summarize.Window{Recall: &says}))(t)
	return c.Messages
}

func TestRecallFindsWhatIsFoldedOnItsBranchAlone(t *testing.T) {
	t.Parallel()
	m := scripting(
		costing(100, 7, sayingToo("Let me look.", llmtest.ResponseCalling(recalls("c1", "password of the orchard gate")))),
		costing(200, 9, llmtest.Response("It is wombat-42.")))
	f := serve(t, nil, m)
	id, head := f.folded(t, "")
	yes := true
	r := f.ask(t, Request{ConversationID: id, HeadID: head, Recall: &yes})
	h := hear(t, r)
	e := h.end
	check.Need(t, e.Status == StatusCompleted && textOf(t, e.Message) == "Let me look.\n\nIt is wombat-42." &&
		h.content.String() == textOf(t, e.Message) && len(h.calls) == 0,
		"%+v, heard %q and %s", e, h.content.String(), h.calls)
	check.That(t, e.Usage == (Usage{PromptTokens: 300, CompletionTokens: 16, CachedTokens: 150}) && e.HeadID == head && e.Recalled == 2,
		"%+v", e)
	branch := f.branch(t, id, e.Message.ID)
	steps := branch[len(branch)-3 : len(branch)-1]
	check.Need(t, branch[len(branch)-4].ID == head && IsStep(steps[0]) && IsStep(steps[1]) && !IsStep(*e.Message),
		"the branch ends in %+v", branch[len(branch)-4:])
	check.That(t, len(h.steps) == 2 && h.steps[0].ID == steps[0].ID && h.steps[1].ID == steps[1].ID, "events told of %+v", h.steps)
	check.That(t, f.activeHead(t, id) == e.Message.ID, "the answer is not the active head")
	found := textOf(t, &steps[1])
	check.That(t, strings.Contains(found, "wombat-42") && !strings.Contains(found, "quokka") && !strings.Contains(found, "gate's password"),
		"found %s", found)
	var result recallResult
	if err := json.Unmarshal([]byte(found), &result); err != nil || result.Searched != 10 || len(result.Passages) == 0 {
		t.Fatalf("%v: %s", err, found)
	}
	asked := m.Requests()
	for _, req := range asked {
		for _, raw := range req.Messages {
			check.That(t, !strings.Contains(string(raw), "quokka"), "a sibling's text reached the model: %s", raw)
		}
		checkCalls(t, req.Messages)
	}
	// The function is offered, the summary says so, and the second request goes
	// on from the first.
	check.That(t, strings.Contains(string(asked[0].Extra["tools"]), `"name":"recall"`) &&
		strings.Contains(string(asked[0].Messages[0]), "can be searched"),
		"asked %s with %s", asked[0].Messages[0], asked[0].Extra["tools"])
	if n := len(asked[0].Messages); len(asked[1].Messages) != n+2 || !slices.EqualFunc(asked[0].Messages, asked[1].Messages[:n], equalBytes) {
		t.Errorf("then asked %s", asked[1].Messages)
	}
	// The next context has the call and its result as they are stored.
	next := contextOf(t, f, id, e.Message.ID, true)
	check.That(t, slices.EqualFunc(asked[0].Messages, next[:len(next)-3], equalBytes) && string(next[len(next)-3]) == string(steps[0].Body),
		"the context is %s", next)
	checkCalls(t, next)
	// Once more with the same id is the same reply, from the store, too.
	for _, of := range []*fixture{f, serveOn(t, f.pool, nil, m)} {
		again, started, err := of.Start(t.Context(), Request{ID: r.MessageID(), ConversationID: id, HeadID: head, Recall: &yes})
		if err != nil || started || again.HeadID() != head {
			t.Errorf("%v, %v", started, err)
		} else if e := end(t, again); e.Message.ID != r.MessageID() || e.Recalled != 2 {
			t.Errorf("%+v", e)
		}
	}
}

func equalBytes(a, b json.RawMessage) bool { return string(a) == string(b) }

func TestRecallIsGivenWhereItIsOn(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	own := map[string]json.RawMessage{"tools": json.RawMessage(`[{"type":"function","function":{"name":"look"}},{"type":"function","function":{"name":"recall"}}]`)}
	custom := map[string]json.RawMessage{"tools": json.RawMessage(`[{"type":"custom","custom":{"name":"recall"}}]`)}
	other := map[string]json.RawMessage{"tools": json.RawMessage(`[ {"type":"function","function":{"name":"look"}} ]`)}
	for name, test := range map[string]struct {
		settings string
		asked    *bool
		extra    map[string]json.RawMessage
		given    bool
	}{
		"nothing says so":              {"", nil, nil, false},
		"the conversation":             {withRecall, nil, nil, true},
		"the request":                  {"", &yes, nil, true},
		"the request has the last say": {withRecall, &no, nil, false},
		"beside the client's tools":    {withRecall, nil, other, true},
		"the client's own stands":      {withRecall, nil, own, false},
		"a custom tool of the client":  {withRecall, nil, custom, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &llmtest.Model{}
			f := serve(t, nil, m)
			id, head := f.folded(t, test.settings)
			e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Recall: test.asked, Extra: test.extra}))
			check.Need(t, e.Status == StatusCompleted, "%+v", e)
			req := m.Requests()[0]
			want := string(test.extra["tools"])
			if test.given {
				want = "[" + string(recallTool) + "]"
				if test.extra != nil {
					want = `[{"type":"function","function":{"name":"look"}},` + string(recallTool) + "]"
				}
			}
			check.Equal(t, "tools", string(req.Extra["tools"]), want)
			says := strings.Contains(string(req.Messages[0]), "can be searched")
			check.That(t, says == test.given, "the summary is introduced so: %s", req.Messages[0])
			check.That(t, slices.EqualFunc(req.Messages, contextOf(t, f, id, head, test.given), equalBytes),
				"the context says otherwise")
		})
	}
	t.Run("two of the name", func(t *testing.T) {
		t.Parallel()
		f := serve(t, nil, &llmtest.Model{})
		id, head := f.folded(t, "")
		_, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: head, Recall: &yes, Extra: own, Messages: bodies(string(spoken("user", "And?")[0].Message.Raw))})
		wantError(t, err, fault.Invalid, "invalid_parameter", "leave recall out")
		if n := f.messages(t); n != 14 { // with the summary
			t.Errorf("%d nodes", n)
		}
	})
	t.Run("a history of the client's", func(t *testing.T) {
		t.Parallel()
		m := &llmtest.Model{}
		f := serve(t, nil, m)
		id, head := f.folded(t, withRecall)
		end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Prompt: &Prompt{Messages: []json.RawMessage{spoken("user", "Hi.")[0].Message.Raw}, Tokens: 5}}))
		r := check.Must(f.Ask(t.Context(), Request{Recall: &yes, Prompt: &Prompt{Messages: []json.RawMessage{spoken("user", "Hi.")[0].Message.Raw}}}))(t)
		end(t, r)
		for _, req := range m.Requests() {
			check.That(t, req.Extra["tools"] == nil, "tools %s", req.Extra["tools"])
		}
	})
}

// Calls of recall are answered, and those of the client's tools stay open below them.
func TestRecallBesideTheClientsCalls(t *testing.T) {
	t.Parallel()
	m := scripting(
		sayingToo("Both.", llmtest.ResponseCalling(llmtest.ToolCall{ID: "w", Name: "weather", Arguments: "{}"}, recalls("c1", "the gate's password"), llmtest.ToolCall{ID: "x", Name: "weather", Arguments: "[]"})),
		llmtest.Response("wombat-42, and rain."))
	f := serve(t, nil, m)
	id, head := f.folded(t, withRecall)
	tools := map[string]json.RawMessage{"tools": json.RawMessage(`[{"type":"function","function":{"name":"weather"}}]`)}
	h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: head, Extra: tools}))
	answer := h.end.Message
	said := chat.Read(answer.Body)
	check.Need(t, len(m.Requests()) == 1 && len(said.Calls) == 2 && said.Calls[0].ID == "w" &&
		said.Calls[1].ID == "x" && said.Text() == "Both." && h.end.FinishReason == "tool_calls",
		"%s, %+v", answer.Body, h.end)
	check.That(t, len(h.calls) == 2 && strings.HasPrefix(string(h.calls[1]), `{"index":1,`) &&
		!strings.Contains(fmt.Sprintf("%s", h.calls), "recall") && h.content.String() == "Both.",
		"heard %s", h.calls)
	var path []json.RawMessage
	for _, m := range f.branch(t, id, answer.ID) {
		path = append(path, m.Body)
	}
	checkCalls(t, path)
	step := chat.Read(path[len(path)-3])
	check.That(t, len(step.Calls) == 1 && step.Calls[0].ID == "c1" && step.Text() == "", "the step is %s", path[len(path)-3])
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: answer.ID, Messages: bodies(result("w"), result("x")), Extra: tools}))
	check.That(t, e.Status == StatusCompleted && e.Recalled == 0, "%+v", e)
	checkCalls(t, m.Requests()[1].Messages)
}

func TestRecallRoundsAreBounded(t *testing.T) {
	t.Parallel()
	for name, tools := range map[string]string{"alone": "", "with the client's": `[{"type":"function","function":{"name":"weather"}}]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			m := &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
				if !strings.Contains(string(req.Extra["tools"]), `"recall"`) {
					return costing(1, 1, llmtest.Response("Enough.")), nil
				}
				calls++
				return costing(1, 1, llmtest.ResponseCalling(recalls(fmt.Sprintf("c%d", calls), "gate password"))), nil
			}}
			f := serve(t, nil, m)
			id, head := f.folded(t, withRecall)
			parallel := true
			extra := map[string]json.RawMessage{"tool_choice": json.RawMessage(`"auto"`)}
			if tools != "" {
				extra["tools"] = json.RawMessage(tools)
			}
			e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Extra: extra, Options: Options{ParallelToolCalls: &parallel}}))
			check.Need(t, e.Status == StatusCompleted && textOf(t, e.Message) == "Enough." && e.Recalled == 10 && e.Usage.PromptTokens == 6,
				"%+v", e)
			asked := m.Requests()
			last := asked[len(asked)-1]
			check.That(t, len(asked) == 6 && string(last.Extra["tools"]) == tools && (last.Extra["tool_choice"] == nil) == (tools == "") &&
				(last.Options.ParallelToolCalls == nil) == (tools == ""),
				"asked %d times, last with %s and %+v", len(asked), last.Extra, last.Options)
			checkCalls(t, last.Messages)
		})
	}
}

// What is wrong with a call, its result says.
func TestRecallCallsThatAreWrong(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	many := make([]llmtest.ToolCall, 10)
	for i := range many {
		many[i] = recalls(fmt.Sprintf("m%d", i), "gate")
	}
	for name, test := range map[string]struct {
		calls []llmtest.ToolCall
		want  string // in the last result
	}{
		"no JSON":         {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":`}}, recallUsage},
		"no query":        {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"limit":3}`}}, "no query"},
		"no words":        {[]llmtest.ToolCall{recalls("a", "…")}, "Say in words"},
		"a limit of 0":    {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":"gate","limit":0}`}}, "1 to 20"},
		"too large":       {[]llmtest.ToolCall{recalls("a", strings.Repeat("gate ", 20_000))}, "fewer words"},
		"nothing found":   {[]llmtest.ToolCall{recalls("a", "zeppelin")}, "Nothing was found"},
		"one of two":      {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{}`}, recalls("b", "orchard gate")}, "wombat-42"},
		"too many calls":  {many, "at once are the most"},
		"further members": {[]llmtest.ToolCall{{ID: "a", Name: "recall", Arguments: `{"query":"orchard gate","limit":1.0,"why":"so"}`}}, "wombat-42"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := scripting(llmtest.ResponseCalling(test.calls...), llmtest.Response("Well."))
			f := serveOn(t, pool, nil, m)
			id, head := f.folded(t, withRecall)
			e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
			check.Need(t, e.Status == StatusCompleted && e.Recalled == 1+len(test.calls), "%+v", e)
			asked := m.Requests()[1].Messages
			checkCalls(t, asked)
			if got := chat.Read(asked[len(asked)-1]).Text(); !strings.Contains(got, test.want) {
				t.Errorf("the result is %s", got)
			}
		})
	}
	t.Run("nothing is folded", func(t *testing.T) {
		t.Parallel()
		m := scripting(llmtest.ResponseCalling(recalls("a", "coppice")), llmtest.Response("Well."))
		f := serveOn(t, pool, nil, m)
		id, head := f.conversation(t)
		yes := true
		e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head, Recall: &yes}))
		asked := m.Requests()[1].Messages
		if got := chat.Read(asked[len(asked)-1]).Text(); e.Status != StatusCompleted || !strings.Contains(got, "No earlier message is hidden") {
			t.Errorf("%+v, %s", e, got)
		}
	})
}
