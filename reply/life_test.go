package reply

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// TestLifeOnAStrictServer leads a branch of 200 turns with tool calls and
// compactions on a server that takes user and assistant by turns only. It refuses
// nothing: neither a reply nor a request for a summary.
func TestLifeOnAStrictServer(t *testing.T) {
	t.Parallel()
	asked, summaries, day := 0, 0, regexp.MustCompile(`Day \d+`)
	server := llmtest.NewServer(t)
	server.Otherwise(llmtest.TakesTurns(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
		last := string(req.Messages[len(req.Messages)-1])
		switch asked++; {
		case strings.Contains(string(req.Body), "coppice-cutoff-"):
			summaries++
			days := slices.Compact(day.FindAllString(string(req.Body), -1))
			return llmtest.Answer("They water the hedge, and ask how it is: it grows well. " + llmtest.Text(45) + strings.Join(days[max(0, len(days)-60):], ", ") + ".")
		case strings.Contains(last, "Water it"):
			return llmtest.CallTools(llmtest.ToolCall{ID: fmt.Sprint("call-", asked), Name: "water", Arguments: `{}`})
		}
		return llmtest.Answer("The hedge grows well. " + llmtest.Text(150))
	})))
	model := openAI(t, server)
	settings := summarize.Defaults()
	settings.MaxContextTokens, settings.ReservedTokens, settings.MinFoldTokens = 2_500, 100, 100
	pool := dbtest.New(t)
	contexts, err := summarize.New(tree.New(pool), summarize.Config{
		Settings: settings, Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 32_768}}},
	})
	check.NoError(t, err)
	f := serveOn(t, pool, func(c *Config) { c.Contexts = contexts }, model)
	c, _, err := f.store.CreateConversation(t.Context(), tree.NewConversation{})
	check.NoError(t, err)
	id, folds := c.ID, 0
	for i := range 200 {
		question := fmt.Sprintf("Day %d. How is the hedge?", i)
		if i%5 == 2 {
			question = fmt.Sprintf("Day %d. Water it.", i)
		}
		e := end(t, f.ask(t, Request{ConversationID: id, Messages: spoken("user", question)}))
		if e.FinishReason == "tool_calls" {
			result := fmt.Sprintf(`{"role":"tool","tool_call_id":"call-%d","content":"watered"}`, asked)
			e = end(t, f.ask(t, Request{ConversationID: id, Messages: []tree.NewMessage{{Message: chat.Read([]byte(result))}}}))
		}
		if e.Err != nil {
			t.Fatalf("turn %d after %d compactions: %v", i, folds, e.Err)
		}
		k, err := contexts.Compact(t.Context(), id, uuid.Nil, summarize.TriggerAppend, nil)
		if err != nil || k.Outcome == tree.OutcomeFailed {
			t.Fatalf("turn %d: %s %s, %v", i, k.Outcome, k.Reason, err)
		}
		if k.Outcome == tree.OutcomeSaved {
			folds++
		}
	}
	for i, req := range server.Requests() {
		if err := llmtest.CheckTurns(req.Messages); err != nil {
			t.Fatalf("request %d was refused: %v", i, err)
		}
	}
	if folds < 4 || summaries < folds {
		t.Errorf("%d compactions, and %d summaries of the model's", folds, summaries)
	}
}

// TestLeavingIsNoStop holds that a reader which leaves a reply doesn't stop it, and that
// nobody takes it for stopping.
func TestLeavingIsNoStop(t *testing.T) {
	t.Parallel()
	model := newGate()
	f := serve(t, nil, model)
	id, head := f.conversation(t)
	r, _, err := f.Start(t.Context(), Request{ConversationID: id, HeadID: head})
	check.NoError(t, err)
	if r.Attend(t.Context(), true)(); r.Stopping(true) {
		t.Error("it is stopping")
	}
	close(model.pieces)
	end(t, r)
}
