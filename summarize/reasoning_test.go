package summarize

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// uncounted is a model whose provider counts no tokens.
type uncounted struct{ llm.Model }

func (u uncounted) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	res, err := u.Model.Complete(ctx, req)
	res.PromptTokens, res.CompletionTokens, res.CachedTokens, res.ReasoningTokens = 0, 0, 0, 0
	return res, err
}

// What a model thinks before a summary is paid for, and counts as reasoning: as
// its provider says, or else by an estimate of its text.
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
			if err != nil || k.Outcome != tree.OutcomeSaved {
				t.Fatalf("%+v, %v", k, err)
			}
			ran := check.Must(store.Usage(t.Context(), id))(t).Compactions
			if k.ReasoningTokens() != test.reasoning || k.CompletionTokens != test.completion || len(ran) != 1 || ran[0].ReasoningTokens != test.reasoning {
				t.Errorf("%d of %d tokens are reasoning, want %d of %d; usage %+v", k.ReasoningTokens(), k.CompletionTokens, test.reasoning, test.completion, ran)
			}
		})
	}
}
