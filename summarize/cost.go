package summarize

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// costPeriod is the time in which the cost of a conversation's summaries counts.
const costPeriod = 24 * time.Hour

// overCost says why no model is to be asked: the calls of a conversation's compactions
// have cost what the settings allow. It is "" where one may be asked. A model without a
// known price costs nothing.
func (s *Service) overCost(ctx context.Context, conversationID uuid.UUID, settings Settings) (why string, err error) {
	if settings.MaxSummaryCost == 0 || s.summarizer == nil {
		return "", nil
	}
	since, cost := time.Now().Add(-costPeriod), 0.0
	for paging := (tree.Paging{Limit: tree.MaxPage}); ; {
		page, err := s.store.Compactions(ctx, conversationID, paging) // newest first
		if err != nil {
			return "", err
		}
		for _, k := range page.Data {
			if k.CreatedAt.Before(since) {
				break
			}
			var attempts []prompt.Attempt
			_ = json.Unmarshal(k.Attempts, &attempts) // the Service wrote them
			for _, a := range attempts {
				of, _ := s.cost(a.Model, a.PromptTokens, a.CompletionTokens)
				cost += of
			}
		}
		if paging.Cursor = page.Next; page.Next == "" || page.Data[len(page.Data)-1].CreatedAt.Before(since) {
			break
		}
	}
	if cost < settings.MaxSummaryCost {
		return "", nil
	}
	return fmt.Sprintf("The summaries of this conversation cost %.4g in the last 24 hours, and max_summary_cost is %g: no model is asked.", cost, settings.MaxSummaryCost), nil
}
