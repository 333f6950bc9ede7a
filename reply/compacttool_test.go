package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestAModelHasItsBranchCompacted: the compaction that a model asks for folds the branch
// once the answer is stored, and not before. A call that can't be met has no other effect
// than its result.
func TestAModelHasItsBranchCompacted(t *testing.T) {
	t.Parallel()
	m := &llmtest.Model{}
	f := serve(t, nil, m)
	c, _, err := f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(`{"compaction":"tool","keep_ratio":0,"min_recent_messages":2,"min_fold_tokens":0}`)})
	check.NoError(t, err)
	head := uuid.Nil
	for i := range 12 {
		head = f.say(t, c.ID, head, []string{"user", "assistant"}[i%2], fmt.Sprintf("Tree %d is an apple tree, stands by the wall, and was planted by Oda in %d. ", i, 1900+i)+strings.Repeat("It bears well. ", 20))
	}
	head = f.say(t, c.ID, head, "user", "We are done with the trees.")
	compactions := func() []tree.Compaction {
		page := check.Must(f.store.Compactions(t.Context(), c.ID, tree.Paging{}))(t)
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
	if len(ran) != 1 || ran[0].HeadID != end.Message.ID || ran[0].Outcome != tree.OutcomeSaved || ran[0].Instructions != "Keep the years." {
		t.Errorf("after the answer %s there are %+v", end.Message.ID, ran)
	}
	if tools := string(m.Requests()[0].Extra["tools"]); tools != "["+string(compactTool)+"]" {
		t.Errorf("the model's functions are %s", tools)
	}
}
