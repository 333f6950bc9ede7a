package summarize

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// TestMaxSummaryCost asks the model until its calls have cost what the settings allow.
// Then the digest writes, and the record and Explain say why; where it may not, there is
// nothing to do, and nothing failed. Another conversation has an amount of its own.
func TestMaxSummaryCost(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	settings := Defaults()
	settings.MaxSummaryCost, settings.Digest = 2, DigestAlways
	// Without a model's price no amount can be kept to.
	unpriced := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: llm.Offline(0)}}}})
	if err := unpriced.CheckSettings([]byte(`{"max_summary_cost":2}`)); fault.Of(err).Field != "settings.max_summary_cost" {
		t.Errorf("without prices: %v", err)
	}
	s := service(t, store, Config{Settings: settings, Cost: func(model string, promptTokens, completionTokens int) (float64, bool) {
		return float64(promptTokens + completionTokens), model == "own"
	}, Summarizer: own(func(in prompt.Input) (prompt.Result, error) {
		return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold), Attempts: []prompt.Attempt{{Model: "own", PromptTokens: 1, CompletionTokens: 1}}}, nil
	})})
	id := conversation(t, store)
	head := tree.Message{}
	for n, want := range []string{"own", digest.Name} {
		head = talk(t, store, id, head.ID, 40)
		if e, err := s.Explain(t.Context(), id, head.ID); err != nil || strings.Contains(e.Warning, "max_summary_cost") != (n == 1) {
			t.Errorf("before compaction %d, Explain warns %q, %v", n+1, e.Warning, err)
		}
		k := compact(t, s, id, head.ID, Demand{})
		if k.Model != want || strings.Contains(k.Reason, "cost 2 in the last 24 hours, and max_summary_cost is 2") != (n == 1) {
			t.Errorf("compaction %d is by %s, want %s: %s", n+1, k.Model, want, k.Reason)
		}
	}
	s.settings.Digest = DigestWhenNeeded
	head = talk(t, store, id, head.ID, 40)
	k, err := s.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{})
	if err != nil || k.Outcome != tree.OutcomeNothingToDo || !strings.Contains(k.Reason, "max_summary_cost is 2") {
		t.Errorf("a branch that fits: %s, %s, %v", k.Outcome, k.Reason, err)
	}
	other := conversation(t, store)
	if k := compact(t, s, other, talk(t, store, other, tree.Message{}.ID, 40).ID, Demand{}); k.Model != "own" {
		t.Errorf("of another conversation, the compaction is by %s", k.Model)
	}
}
