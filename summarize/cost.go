package summarize

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// costPeriod is the time in which the cost of a conversation's summaries counts.
const costPeriod = 24 * time.Hour

// checkCost returns a fault.Invalid for an amount that the calls of a model without a
// known price would never reach.
func (s *Service) checkCost(settings Settings) error {
	c, _ := s.summarizer.(Cascade)
	for _, m := range c.Models {
		if _, known := s.cost(m.Model.Name(), 0, 0); settings.MaxSummaryCost > 0 && !known {
			return settingFault("max_summary_cost", "It needs the price of %[1]s, which writes summaries: start the server with --model-price %[1]s=IN,OUT, or leave it out.", m.Model.Name())
		}
	}
	return nil
}

// withinCost takes the plan from an assessment where no model may be asked today and the
// digest may not stand in. A branch that fits its window has nothing else to do then.
func (s *Service) withinCost(ctx context.Context, a *assessment, req compactionRequest) (err error) {
	if a.plan == nil {
		return nil
	}
	if a.capped, err = s.overCost(ctx, a.view.ConversationID, a.settings); a.capped == "" || s.mayDigest(*a, req) {
		return err
	}
	a.plan, a.reason, a.quiet = nil, Reason(a.capped), room{tokens: math.MaxInt32, messages: math.MaxInt32}
	if a.fits() {
		a.quiet.tokens = a.settings.Budget().Available - contextTokens(a.view) + 1
	}
	return err
}

// overCost says why no model is to be asked: the calls of a conversation's compactions
// have cost what the settings allow. It is "" where one may be asked.
func (s *Service) overCost(ctx context.Context, conversationID uuid.UUID, settings Settings) (why string, err error) {
	if settings.MaxSummaryCost == 0 || s.summarizer == nil {
		return "", nil
	}
	since, cost := time.Now().Add(-costPeriod), 0.0
	for paging := (tree.Paging{Limit: tree.MaxPage}); ; {
		page, err := s.store.Summaries().Compactions(ctx, conversationID, paging) // newest first
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
