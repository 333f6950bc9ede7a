package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// A replay has the prompt byte for byte, of a first and of a later compaction, and
// says what is missing once a summary was deleted.
func TestOf(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	model := &llmtest.Model{ModelName: "scribe", Answer: func(context.Context, llm.Request) (llm.Response, error) {
		return llmtest.Response("Trees 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 of the rows 0 and 1. " + llmtest.Text(100)), nil
	}}
	service := check.Must(summarize.New(store, summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000}}}}))(t)
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	head, keep := uuid.Nil, 4
	for i, demand := range []summarize.Demand{{KeepRecentMessages: keep}, {KeepRecentMessages: keep, Instructions: "Keep the <names>."}} {
		for n := range 20 {
			role := []string{"user", "assistant"}[n%2]
			m := check.Must(store.Append(t.Context(), c.ID, head, tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":%q,"content":"Tree %d of row %d. %s"}`, role, n, i, llmtest.Text(300)))}))(t)
			head = m.ID
		}
		k, err := service.Compact(t.Context(), c.ID, head, summarize.TriggerRequest, &demand)
		check.Need(t, err == nil && k.Outcome == tree.OutcomeSaved, "%s: %s, %v", k.Outcome, k.Reason, err)
		r, err := Of(t.Context(), store, k)
		if err != nil || len(r.Missing)+len(r.LeakedTags) > 0 || r.Summary == "" || (i > 0) != (r.Input.Prior != "") {
			t.Fatalf("%+v, %v", r, err)
		}
		if sent := model.Requests()[i].Messages; !slices.EqualFunc(r.Messages, sent, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("replayed\n%s\nsent\n%s", r.Messages, sent)
		}
		again, err := r.Again(t.Context(), digest.Summarizer{})
		check.That(t, err == nil && again != "" && again != r.Summary, "again: %q, %v", again, err)
		dir := t.TempDir()
		check.NoError(t, r.Write(dir, again))
		prompt, err := os.ReadFile(filepath.Join(dir, "prompt.json"))
		check.That(t, err == nil && json.Valid(prompt), "prompt.json: %v", err)
		if i > 0 {
			check.Must(store.Prune(t.Context(), c.ID, k.SummaryID))(t)
			if r, err = Of(t.Context(), store, k); err != nil || len(r.Missing) != 1 || r.Summary != "" {
				t.Errorf("after the prune: %+v, %v", r, err)
			}
		}
	}
}
