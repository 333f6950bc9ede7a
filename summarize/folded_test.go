package summarize

import (
	"context"
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
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// The summarizer is told what stays, and reads what no longer does. Thanks don't stay.
func TestWhatStaysBesideASummary(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	var inputs []prompt.Input
	settings := Defaults()
	settings.KeepUserRatio = 0.002
	s := service(t, store, Config{Settings: settings, Summarizer: own(func(in prompt.Input) (prompt.Result, error) {
		inputs = append(inputs, in)
		return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
	})})
	id := conversation(t, store)
	says := func(parent uuid.UUID, text string, pinned bool) uuid.UUID {
		m := check.Must(store.Append(t.Context(), id, parent, tree.NewMessage{Message: chat.Read((&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart(text)}}).Encode()), Pinned: pinned}))(t)
		return m.ID
	}
	pin := says(uuid.Nil, "Never cut the hedge in spring.", true)
	head := talk(t, store, id, pin, 30).ID
	thanks := says(head, "Thanks a lot, bye!", false)
	var kept []uuid.UUID
	for range 2 {
		head = talk(t, store, id, thanks, 30).ID
		check.Must(s.Compact(t.Context(), id, head, TriggerRequest, &Demand{KeepRecentMessages: 58}))(t)
		c := contextOf(t, s, id, head)
		check.That(t, !slices.Contains(c.Summary.KeptIDs, thanks) && slices.Contains(c.Summary.KeptIDs, pin),
			"kept are %v", c.Summary.KeptIDs)
		if kept == nil {
			kept = c.Summary.KeptIDs
			if in := inputs[0]; !in.Stays[pin] || len(in.Kept)+len(in.Leaving) > 0 {
				t.Errorf("of the first fold stay %v, and of earlier ones %d and %d", in.Stays, len(in.Kept), len(in.Leaving))
			}
		}
		thanks = head
	}
	in := inputs[len(inputs)-1]
	check.Need(t, len(in.Kept) != 0 && in.Kept[0].ID == pin && len(in.Leaving) != 0 && len(in.Kept)+len(in.Leaving) == len(kept),
		"%d messages stayed beside the first summary; %d stay, and %d leave", len(kept), len(in.Kept), len(in.Leaving))
	for _, m := range in.Leaving {
		check.That(t, slices.Contains(kept, m.ID) && !strings.Contains(string(m.Body), "Thanks"), "%s leaves", m.Body)
	}
}

// A summarizer reads a folded message's file, and the digest keeps its facts.
func TestFilesAreFolded(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	file := check.Must3(store.Attachments().Add(t.Context(), "hedge.txt", []byte("The hedge was planted by Oda Brandt on 4711-03-02 and costs EUR 1,290.50 a year.")))(t)
	body := (&chat.Message{Role: chat.User, Parts: []chat.Part{chat.TextPart("Read this."), file.Part()}}).Encode()
	var read strings.Builder
	summarizers := map[string]Summarizer{
		"own": own(func(in prompt.Input) (prompt.Result, error) {
			for _, m := range in.Fold {
				for _, f := range in.Read(m).Files {
					read.WriteString(f.Name + f.Text)
				}
			}
			return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
		}),
		"digest": nil,
	}
	for name, with := range summarizers {
		s, id := service(t, store, Config{Summarizer: with}), conversation(t, store)
		m := check.Must(store.Append(t.Context(), id, uuid.Nil, tree.NewMessage{Message: chat.Read(body)}))(t)
		head := talk(t, store, id, m.ID, 40)
		k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
		check.Need(t, err == nil && k.Outcome == tree.OutcomeSaved, "%s: %s: %s, %v", name, k.Outcome, k.Reason, err)
		summary := string(contextOf(t, s, id, head.ID).Messages[0])
		check.That(t, name != "digest" || strings.Contains(summary, "1,290.50"), "the digest is %s", summary)
	}
	check.That(t, strings.Contains(read.String(), "Oda Brandt"), "the summarizer reads %.300s", read.String())
}

// A summary ends with the files that tools used, which who writes the next one doesn't read.
func TestPathsAreCarriedOn(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	s := service(t, store, Config{Summarizer: own(func(in prompt.Input) (prompt.Result, error) {
		check.That(t, !strings.Contains(in.Prior, "Files that tools used") && (in.Prior == "" || in.PriorTokens == tokens.O200k().Count(in.Prior)),
			"the summary before is %d tokens: %s", in.PriorTokens, in.Prior)
		return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
	})})
	id, head := conversation(t, store), uuid.Nil
	for _, path := range []string{"hedge.go", "gate.go"} {
		for _, m := range []tree.Message{prompttest.UserSays("Mend " + path), prompttest.AssistantCalls("edit", `{"path":"`+path+`"}`), prompttest.ToolSays("edit", "done")} {
			stored := check.Must(store.Append(t.Context(), id, head, tree.NewMessage{Message: chat.Read(m.Body)}))(t)
			head = stored.ID
		}
		head = talk(t, store, id, head, 30).ID
		compact(t, s, id, head, Demand{})
	}
	if c := contextOf(t, s, id, head); !strings.Contains(string(c.Messages[0]), `\n- changed hedge.go\n- changed gate.go\n</coppice-summary>`) {
		t.Errorf("the summary is %s", c.Messages[0])
	}
}

// A merge loses nothing that the summary before told of messages folded for good.
func TestMergeHoldsThePriorSummary(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: witness{}, Window: 100_000}}}})
	id := conversation(t, store)
	parent, prior := uuid.Nil, uuid.Nil
	for round := range 3 {
		for n := range 10 {
			role := []string{"user", "assistant"}[n%2]
			parent = add(t, store, id, parent, fmt.Sprintf(`{"role":%q,"content":"m%dm is what was said here%s"}`, role, 10*round+n, strings.Repeat(", and then some more", 8))).ID
		}
		k := compact(t, s, id, parent, Demand{KeepRecentMessages: 2})
		check.That(t, k.PriorSummaryID == prior, "round %d: the compaction merges %s, want %s", round, k.PriorSummaryID, prior)
		prior = k.SummaryID
		summary := check.Must(store.Summaries().One(t.Context(), id, k.SummaryID))(t)
		told := marksIn(summary.Body)
		for n := range 10*round + 8 {
			mark := fmt.Sprintf("m%dm", n)
			check.That(t, slices.Contains(told, mark), "round %d: the summary doesn't tell of the folded message %s", round, mark)
		}
	}
}

// Once a conversation's calls cost what settings allow, the digest writes, or nothing, and says why.
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
		check.That(t, k.Model == want && strings.Contains(k.Reason, "cost 2 in the last 24 hours, and max_summary_cost is 2") == (n == 1),
			"compaction %d is by %s, want %s: %s", n+1, k.Model, want, k.Reason)
	}
	s.settings.Digest = DigestWhenNeeded
	head = talk(t, store, id, head.ID, 40)
	k, err := s.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{})
	check.That(t, err == nil && k.Outcome == tree.OutcomeNothingToDo && strings.Contains(k.Reason, "max_summary_cost is 2"),
		"a branch that fits: %s, %s, %v", k.Outcome, k.Reason, err)
	other := conversation(t, store)
	if k := compact(t, s, other, talk(t, store, other, tree.Message{}.ID, 40).ID, Demand{}); k.Model != "own" {
		t.Errorf("of another conversation, the compaction is by %s", k.Model)
	}
}

// uncounted is a model whose provider counts no tokens.
type uncounted struct{ llm.Model }

func (u uncounted) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	res, err := u.Model.Complete(ctx, req)
	res.PromptTokens, res.CompletionTokens, res.CachedTokens, res.ReasoningTokens = 0, 0, 0, 0
	return res, err
}

// What a model thinks before a summary counts as reasoning, by its provider or an estimate.
func TestReasoningOfSummaries(t *testing.T) {
	t.Parallel()
	thought := strings.Repeat("The hedge and the fence both matter. ", 40)
	provider := llmtest.NewServer(t)
	provider.Otherwise(llmtest.Think(thought, written))
	model := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: provider.URL(), APIKey: "key", Model: "thinks", HTTPClient: provider.Client()}))(t)
	count := tokens.O200k()
	for _, test := range []struct {
		name                  string
		model                 llm.Model
		reasoning, completion int
	}{
		{"counted", model, len(thought) / 4, len(thought+written)/4 + 1},
		{"not counted", uncounted{model}, count.Count(thought), count.Count(thought) + count.Count(written)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := tree.New(database())
			s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: test.model, Window: 100_000}}}})
			id := conversation(t, store)
			k, err := s.Compact(t.Context(), id, talk(t, store, id, uuid.Nil, 40).ID, TriggerAppend, nil)
			check.Need(t, err == nil && k.Outcome == tree.OutcomeSaved, "%+v, %v", k, err)
			ran := check.Must(store.Usage(t.Context(), id))(t).Compactions
			if k.ReasoningTokens() != test.reasoning || k.CompletionTokens != test.completion || len(ran) != 1 || ran[0].ReasoningTokens != test.reasoning {
				t.Errorf("%d of %d tokens are reasoning, want %d of %d; usage %+v", k.ReasoningTokens(), k.CompletionTokens, test.reasoning, test.completion, ran)
			}
		})
	}
}
