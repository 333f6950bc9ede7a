package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// write has the planned summary written, or the first part of it where a call
// takes no more, and checks that it gains something. It notes in k what
// happened, and in l what was done of the plan. It gives the node to save, nil
// where there is none.
func (s *Service) write(ctx context.Context, l *look, d *Demand, k *tree.Compaction) (*tree.NewSummary, error) {
	whole := l.plan
	l.planned(k, s.cascade.portion(whole.Fold, whole.Target), whole)
	portion := len(l.plan.Fold)
	in, err := s.input(ctx, l.view, l.plan, k.ID)
	if err != nil {
		return nil, stale(k, err)
	}
	if d != nil {
		in.Instructions = d.Instructions
	}
	a, attempts, err := s.cascade.run(ctx, in)
	var summary *tree.NewSummary
	if err == nil {
		l.planned(k, a.taken, whole)
		summary, err = s.compose(ctx, l, a, k)
	}
	// A branch that doesn't fit needs a summary that gains something, by whom ever.
	if gains := summary != nil && summary.Tokens < l.plan.Replaced; err == nil && !gains &&
		a.model != OfflineDigest && !s.cascade.noDigest && k.TokensBefore > l.settings.Budget().Available {
		if a, err = s.cascade.digest(in, &attempts); err == nil {
			l.planned(k, portion, whole)
			summary, err = s.compose(ctx, l, a, k)
		}
	}
	k.Attempts = attemptsJSON(attempts)
	for _, a := range attempts {
		k.PromptTokens += a.PromptTokens
		k.CompletionTokens += a.CompletionTokens
	}
	switch {
	case errors.Is(err, errNoSummary):
		k.Outcome, k.Reason = tree.OutcomeFailed, lastError(attempts)
		return nil, nil
	case err != nil:
		return nil, stale(k, err)
	case summary.Tokens >= l.plan.Replaced:
		k.Outcome, k.Reason = tree.OutcomeNoGain, fmt.Sprintf("The summary's message has %d tokens, and what it would replace %d.", summary.Tokens, l.plan.Replaced)
		return nil, nil
	}
	k.Outcome, k.TokensAfter = tree.OutcomeSaved, k.TokensBefore-l.plan.Replaced+summary.Tokens
	k.MessagesAfter = len(l.view.Prefix) + 1 + l.plan.Tail
	k.Reason = fmt.Sprintf("%d messages folded, %d → %d tokens.", len(l.plan.Fold), k.TokensBefore, k.TokensAfter)
	if cut := cutKept(l.plan.Kept); cut > 0 {
		k.Reason += fmt.Sprintf(" Of the messages kept word for word, %d are cut in the middle.", cut)
	}
	return summary, nil
}

// planned makes the first n messages of the whole plan the one that is carried
// out.
func (l *look) planned(k *tree.Compaction, n int, whole *Plan) {
	l.plan, l.goal = planFirst(l.view, l.settings, whole, n), uuid.Nil
	if n < len(whole.Fold) {
		l.goal = whole.CutoffID
	}
	k.AnchorID, k.CutoffID, k.FoldedMessages, k.FoldedTokens = l.plan.AnchorID, l.plan.CutoffID, len(l.plan.Fold), l.plan.FoldTokens
}

// stale notes that messages are gone, which is an outcome and no error.
func stale(k *tree.Compaction, err error) error {
	if !errors.Is(err, fault.NotFound) {
		return err
	}
	k.Outcome, k.Reason = tree.OutcomeStale, "The messages to summarize were deleted meanwhile."
	return nil
}

// attemptsJSON is what the record has of them.
func attemptsJSON(attempts []Attempt) json.RawMessage {
	if attempts == nil {
		return json.RawMessage("[]")
	}
	raw, _ := json.Marshal(attempts) // numbers and strings always marshal
	return raw
}

// input reads the text that the summarizer needs.
func (s *Service) input(ctx context.Context, v tree.View, p *Plan, compactionID uuid.UUID) (Input, error) {
	ids := make([]uuid.UUID, 0, len(p.Fold)+len(p.LookAhead))
	for _, m := range p.Fold {
		ids = append(ids, m.ID)
	}
	for _, m := range p.LookAhead {
		ids = append(ids, m.ID)
	}
	read, err := s.store.Messages(ctx, v.ConversationID, ids)
	if err != nil {
		return Input{}, err
	}
	in := Input{Nonce: fenceNonce(compactionID), TargetTokens: p.Target, Fold: read[:len(p.Fold)], LookAhead: read[len(p.Fold):]}
	if v.Summary != nil {
		in.Prior = unwrapSummary(v.Summary.Body)
		in.PriorTokens = s.cascade.count.Count(in.Prior)
	}
	return in, nil
}

// compose makes the node of a summary. The node's body is the message that a
// context shows, kept text and all: an export carries it whole, and whoever
// counts it counts what it costs.
func (s *Service) compose(ctx context.Context, l *look, a answer, k *tree.Compaction) (*tree.NewSummary, error) {
	k.Model = a.model
	ids := make([]uuid.UUID, len(l.plan.Kept))
	for i, kept := range l.plan.Kept {
		ids[i] = kept.ID
	}
	kept, err := s.store.Messages(ctx, l.view.ConversationID, ids)
	if err != nil {
		return nil, err
	}
	return compose(a, l.plan, kept, s.cascade.count), nil
}

func compose(a answer, p *Plan, kept []tree.Message, count tokens.Counter) *tree.NewSummary {
	shown, ids := make([]tree.Message, len(kept)), make([]uuid.UUID, len(kept))
	for i, m := range kept {
		shown[i] = cutTo(m, keptCharacters(m, p.Kept[i].Limit, count))
		ids[i] = m.ID
	}
	body, dropped := wrapWithin(a.text, shown, mostSummaryBytes)
	return &tree.NewSummary{
		AnchorID: p.AnchorID, Body: body, Tokens: messageTokens + count.Count(readSpoken(tree.Message{Role: tree.RoleUser, Body: body}).text),
		Range: tree.SummaryRange{LastSummarizedID: p.CutoffID, PriorSummaryID: p.PriorID, KeptIDs: ids[dropped:], Model: a.model},
	}
}

// messageTokens frames a message, as package tree counts.
const messageTokens = 3

func lastError(attempts []Attempt) string {
	if len(attempts) == 0 {
		return "There is no summarizer, and the offline digest is switched off."
	}
	last := attempts[len(attempts)-1]
	return fmt.Sprintf("No summarizer gave a summary. The last, %s: %s.", last.Model, last.Error)
}
