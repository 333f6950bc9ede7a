package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A recallingGate calls recall first, and is a gate from then on.
type recallingGate struct {
	*gate
	first llm.Response
	asked bool
}

func (g *recallingGate) Stream(ctx context.Context, req llm.Request, each func(llm.Delta) error) (llm.Response, error) {
	if !g.asked {
		g.asked = true
		if err := each(llm.Delta{Content: g.first.Text, Reasoning: "Where was it?"}); err != nil {
			return llm.Response{}, err
		}
		return g.first, nil
	}
	return g.gate.Stream(ctx, req, each)
}

func newRecallingGate() *recallingGate {
	return &recallingGate{gate: newGate(), first: sayingToo("Let me look.", llmtest.ResponseCalling(recalls("c1", "orchard gate password")))}
}

// midway starts a reply whose first call of recall was answered.
func (f *fixture) midway(t testing.TB, g *recallingGate) (id, head uuid.UUID, r *Reply, steps []tree.Message) {
	t.Helper()
	id, head = f.folded(t, withRecall)
	r = f.ask(t, Request{ConversationID: id, HeadID: head})
	g.pieces <- "It is "
	check.Eventually(t, "the piece", func() bool { content, _ := r.text(); return strings.HasSuffix(content, "It is ") })
	if steps = r.recalled(); len(steps) != 2 {
		t.Fatalf("the steps are %+v", steps)
	}
	return id, head, r, steps
}

// A server killed after a call of recall leaves a valid branch, and the answer's text below the result.
func TestKilledBetweenCallsOfRecall(t *testing.T) {
	t.Parallel()
	g := newRecallingGate()
	f := serve(t, byHand("a"), g)
	id, head, r, steps := f.midway(t, g)
	f.save(r)
	b := serveOn(t, f.pool, byHand("b"), newGate())
	followed, err := b.Find(t.Context(), id, r.MessageID())
	check.Need(t, err == nil && followed.HeadID() == head, "%v, answers %v", err, followed)
	seen := &heard{}
	seen.read(t, followed, func() bool { return seen.content.Len() > 0 })
	check.That(t, len(seen.steps) == 2 && seen.steps[1].ID == steps[1].ID &&
		seen.content.String() == "Let me look.\n\nIt is " && seen.started.ParentID == head,
		"another server tells of %+v", seen)
	serveOn(t, f.pool, byHand("a"), newGate()).sweep(t, watch{}, time.Now())
	m, err := f.store.Message(t.Context(), id, r.MessageID())
	check.Need(t, err == nil && textOf(t, &m) == "Let me look.\n\nIt is " && m.ParentID == steps[1].ID && f.activeHead(t, id) == m.ID,
		"%+v, %v", m, err)
	n := noteOf(t, m)
	check.That(t, n.FinishReason == FinishInterrupted && n.Recalled == 2 && n.HeadID != nil && *n.HeadID == head, "%+v", n)
	checkCalls(t, contextOf(t, f, id, m.ID, true))
	again, started, err := b.Start(t.Context(), Request{ID: r.MessageID(), ConversationID: id, HeadID: head})
	check.That(t, err == nil && !started && again.MessageID() == m.ID, "%v, %v", started, err)
}

// What a search gives never takes the context over its window.
func TestRecallKeepsInsideTheWindow(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, &llmtest.Model{})
	id, head := f.folded(t, withRecall)
	rapid.Check(t, func(rt *rapid.T) {
		room := rapid.IntRange(-100, 2*maxResultTokens).Draw(rt, "room")
		query := rapid.SampledFrom([]string{"orchard gate password", "apple tree wall", "tree", "zeppelin"}).Draw(rt, "query")
		limit := rapid.IntRange(1, maxPassages).Draw(rt, "limit")
		a := &assignment{head: head, request: Request{ConversationID: id}}
		body := check.Must(f.recall(t.Context(), a, "c", fmt.Sprintf(`{"query":%q,"limit":%d}`, query, limit), room))(rt)
		m, err := chat.Parse(body)
		check.Need(rt, err == nil && m.Role == chat.Tool && m.Answers() == "c", "%v: %s", err, body)
		cost, err := f.store.Cost(t.Context(), m)
		var result recallResult
		found := json.Unmarshal([]byte(m.Text()), &result) == nil
		switch {
		case err != nil:
			rt.Fatal(err)
		case room < minResultTokens && m.Text() != noRoom:
			rt.Fatalf("without room: %s", m.Text())
		case found && (cost > room || cost > maxResultTokens || len(result.Passages) > limit):
			rt.Fatalf("%d tokens and %d passages in a room of %d: %s", cost, len(result.Passages), room, m.Text())
		case strings.Contains(m.Text(), "quokka"):
			rt.Fatalf("of a sibling: %s", m.Text())
		case room > 2000 && query != "zeppelin" && len(result.Passages) == 0:
			rt.Fatalf("nothing: %s", m.Text())
		}
	})
	// A branch that fills its window leaves no room to the search.
	m := scripting(llmtest.ResponseCalling(recalls("a", "gate")), llmtest.Response("Well."))
	f = serveOn(t, f.pool, nil, m)
	c := check.Must(f.contexts.Context(t.Context(), id, head, summarize.Window{}))(t)
	settings := fmt.Sprintf(`{"recall":true,"reserved_tokens":0,"max_context_tokens":%d}`, c.Usage.ContextTokens+100)
	check.Must(f.store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{Settings: json.RawMessage(settings)}))(t)
	end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
	asked := m.Requests()[1].Messages
	check.Equal(t, "the result", chat.Read(asked[len(asked)-1]).Text(), noRoom)
}

// Results of earlier searches are not found again, also where they are folded.
func TestRecallFindsNoResultsOfItsOwn(t *testing.T) {
	t.Parallel()
	m := scripting(
		llmtest.ResponseCalling(recalls("c1", "orchard gate password")), llmtest.Response("It is wombat-42."),
		llmtest.ResponseCalling(recalls("c2", "orchard gate password")), llmtest.Response("Still wombat-42."))
	f := serve(t, nil, m)
	id, head := f.folded(t, withRecall)
	answer := end(t, f.ask(t, Request{ConversationID: id, HeadID: head})).Message
	check.Must(f.store.Summaries().Add(t.Context(), id, tree.NewSummary{
		AnchorID: answer.ID, Body: spoken("user", "The gate's password was asked for.")[0].Message.Raw, Range: tree.SummaryRange{LastSummarizedID: answer.ID, Model: "test"},
	}))(t)
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: answer.ID, Messages: spoken("user", "And now?")}))
	check.Need(t, e.Status == StatusCompleted, "%+v", e)
	asked := m.Requests()[3].Messages
	got := chat.Read(asked[len(asked)-1]).Text()
	check.That(t, strings.Contains(got, branchSecret) && !strings.Contains(got, `"role":"tool"`) && !strings.Contains(got, "(calls recall"),
		"found %s", got)
}

// A provider that fails after a call of recall loses nothing that came.
func TestModelThatFailsAfterACallOfRecall(t *testing.T) {
	t.Parallel()
	first := sayingToo("Let me look.", llmtest.ResponseCalling(recalls("c1", "gate")))
	calls := 0
	f := serve(t, nil, &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		if calls++; calls == 1 {
			return costing(10, 2, first), nil
		}
		return llm.Response{}, &llm.Error{Kind: llm.ErrUnavailable, Model: "fake"}
	}})
	id, head := f.folded(t, withRecall)
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
	check.Need(t, e.Status == StatusFailed && textOf(t, e.Message) == "Let me look." &&
		e.Usage.PromptTokens == 10 && e.Err != nil && !errors.Is(e.Err, context.Canceled),
		"%+v", e)
	checkCalls(t, contextOf(t, f, id, e.Message.ID, true))
}

// A model that wants its reasoning back gets it with its call.
func TestRecallGoesOnFromTheReasoning(t *testing.T) {
	t.Parallel()
	first := llmtest.ResponseCalling(recalls("c1", "gate"))
	first.Reasoning = "Where was it?"
	m := scripting(first, llmtest.Response("There."))
	f := serve(t, func(c *Config) { c.WantsReasoning = func(string) bool { return true } }, m)
	id, head := f.folded(t, withRecall)
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
	asked := m.Requests()[1].Messages
	call := asked[len(asked)-2]
	check.That(t, strings.Contains(string(call), `"reasoning_content":"Where was it?"`) && e.Message.Reasoning == "Where was it?",
		"%s, %+v", call, e.Message)
}

// A compaction that a model asks for comes after its answer. A wrong call has only its result.
func TestAModelHasItsBranchCompacted(t *testing.T) {
	t.Parallel()
	m := &llmtest.Model{}
	f := serve(t, nil, m)
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(`{"compaction":"tool","keep_ratio":0,"min_recent_messages":2,"min_fold_tokens":0}`)}))(t)
	head := uuid.Nil
	for i := range 12 {
		head = f.say(t, c.ID, head, []string{"user", "assistant"}[i%2], fmt.Sprintf("Tree %d is an apple tree, stands by the wall, and was planted by Oda in %d. ", i, 1900+i)+strings.Repeat("It bears well. ", 20))
	}
	head = f.say(t, c.ID, head, "user", "We are done with the trees.")
	compactions := func() []tree.Compaction {
		page := check.Must(f.store.Summaries().Compactions(t.Context(), c.ID, tree.Paging{}))(t)
		return page.Data
	}
	calls := llmtest.ResponseCalling(
		llmtest.ToolCall{ID: "c1", Name: CompactName, Arguments: `{"instructions":7}`},
		llmtest.ToolCall{ID: "c2", Name: CompactName, Arguments: `{"instructions":"Keep the years."}`})
	m.Answer = func(_ context.Context, req llm.Request) (llm.Response, error) {
		if len(m.Requests()) == 1 {
			return calls, nil
		}
		if ran := compactions(); len(ran) > 0 {
			t.Errorf("before the answer there is a compaction: %s", ran[0].Reason)
		}
		n := len(req.Messages)
		if wrong, noted := string(req.Messages[n-2]), string(req.Messages[n-1]); !strings.Contains(wrong, "Call compact_branch with an object") || !strings.Contains(noted, "once your answer is complete") {
			t.Errorf("the results are %s and %s", wrong, noted)
		}
		return llmtest.Response("Noted."), nil
	}
	end := end(t, f.ask(t, Request{ConversationID: c.ID, HeadID: head}))
	f.background.running.Wait()
	ran := compactions()
	check.That(t, len(ran) == 1 && ran[0].HeadID == end.Message.ID && ran[0].Outcome == tree.OutcomeSaved && ran[0].Instructions == "Keep the years.",
		"after the answer %s there are %+v", end.Message.ID, ran)
	check.Equal(t, "the model's functions", string(m.Requests()[0].Extra["tools"]), "["+string(compactTool)+"]")
}
