package summarize

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// madeByDigest tells of all summaries of a conversation which the offline digest
// made, or were made of one that it made.
func madeByDigest(summaries []tree.Summary) map[uuid.UUID]bool {
	byID := make(map[uuid.UUID]*tree.Summary, len(summaries))
	for i := range summaries {
		byID[summaries[i].ID] = &summaries[i]
	}
	made := make(map[uuid.UUID]bool, len(summaries))
	for i := range summaries {
		var chain []*tree.Summary // the summary, the one that it merged, and so on
		for at := &summaries[i]; at != nil && !slices.Contains(chain, at); at = byID[at.Range.PriorSummaryID] {
			if _, known := made[at.ID]; known {
				break
			}
			chain = append(chain, at)
		}
		for _, at := range slices.Backward(chain) {
			made[at.ID] = at.Range.Model == digest.Name || made[at.Range.PriorSummaryID]
		}
	}
	return made
}

// madeByDigest tells of all summaries of a conversation which the offline digest
// made, or were made of one that it made. Where a summary that was merged is
// undone since, the records of compactions tell what wrote it.
func (s *Service) madeByDigest(ctx context.Context, conversationID uuid.UUID, summaries []tree.Summary) (map[uuid.UUID]bool, error) {
	there := make(map[uuid.UUID]bool, len(summaries))
	for _, summary := range summaries {
		there[summary.ID] = true
	}
	undone := func(summary tree.Summary) bool {
		return summary.Range.PriorSummaryID != uuid.Nil && !there[summary.Range.PriorSummaryID]
	}
	if !slices.ContainsFunc(summaries, undone) {
		return madeByDigest(summaries), nil
	}
	writings, err := s.store.Writings(ctx, conversationID)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(summaries)
	for _, w := range writings {
		if !there[w.SummaryID] {
			all = append(all, tree.Summary{ID: w.SummaryID, Range: tree.SummaryRange{PriorSummaryID: w.PriorSummaryID, Model: w.Model}})
		}
	}
	made := madeByDigest(all)
	maps.DeleteFunc(made, func(id uuid.UUID, _ bool) bool { return !there[id] })
	return made, nil
}

// resummarizes tells whether summaries of the digest are to be made again at all.
func (s *Service) resummarizes(settings Settings) bool {
	return s.summarizer != nil && settings.Digest != DigestAlways && settings.Compaction.automatic()
}

// waiting tells whether a summary that applies to a branch waits to be made
// again by a model.
func (s *Service) waiting(ctx context.Context, v tree.View, settings Settings) (bool, error) {
	switch {
	case v.Summary == nil || v.Folded == 0 || !s.resummarizes(settings):
		return false, nil
	case v.Summary.Range.Model == digest.Name:
		return true, nil
	case v.Summary.Range.PriorSummaryID == uuid.Nil:
		return false, nil
	}
	all, err := s.store.Summaries(ctx, v.ConversationID)
	if err != nil {
		return false, err
	}
	made, err := s.madeByDigest(ctx, v.ConversationID, all)
	return made[v.Summary.ID], err
}

// mayRetry tells whether a summary that waits may be made now. No model may be asked
// where the conversation's summaries have cost enough. After failures, such
// as refusals of the models, the next attempt comes late: after an hour, and after
// twice the time with each.
func (s *Service) mayRetry(ctx context.Context, v tree.View, settings Settings) (bool, error) {
	if capped, err := s.overCost(ctx, v.ConversationID, settings); err != nil || capped != "" {
		return false, err
	}
	tried, err := s.store.FruitlessCompactions(ctx, v.ConversationID, settings.json())
	if err != nil {
		return false, err
	}
	var last time.Time
	times := 0
	for _, k := range tried { // the newest first
		if k.RemadeID != v.Summary.ID || k.Outcome != tree.OutcomeNoGain && k.Outcome != tree.OutcomeFailed {
			continue
		}
		if times++; times == 1 {
			last = k.CreatedAt
		}
	}
	return times == 0 || time.Since(last) > failedInterval<<min(times-1, 10), nil
}

// replaceDigest has a model make the summary that applies to a branch again from the
// messages, if the offline digest made it or a summary that it merged. The new summary
// builds on the deepest summary before it that no digest went into. It is made in as
// many steps as there is time for, and hangs at the same anchor.
func (s *Service) replaceDigest(ctx context.Context, conversationID, headID uuid.UUID, req compactionRequest) (p Progress, err error) {
	if s.summarizer == nil {
		return p, nil
	}
	v, err := s.store.View(ctx, conversationID, headID, wholeBranch, tree.Skeleton())
	if err != nil || v.Summary == nil {
		return p, err
	}
	settings, err := s.windowOf(v, Window{})
	if err != nil {
		return p, err
	}
	if waits, err := s.waiting(ctx, v, settings); err != nil || !waits {
		return p, err
	}
	if ready, err := s.mayRetry(ctx, v, settings); err != nil || !ready {
		return p, err
	}
	if left := s.spares(); left > 0 {
		return Progress{Failed: errNobodyAnswered, Away: left}, nil
	}
	r, err := s.remake(ctx, *v.Summary, req)
	if err != nil {
		return p, err
	}
	if p.More = r.more; r.away > 0 {
		p.Failed, p.Away = errNobodyAnswered, r.away
	}
	return p, nil
}

var errNobodyAnswered = errors.New("no model answered")

// A RemakeDemand says how a summary is to be made again.
type RemakeDemand struct {
	Instructions string // for the summarizer, in addition to the standing ones
	Model        string // the model of the Service's Cascade that writes the summary; "" for all of them, in order
}

// Remake makes a summary again from the messages, with other instructions or by
// another model. It builds on the deepest summary before it that no digest went
// into, and works in as many steps as ctx leaves time for. The new summary
// hangs at the same anchor and takes the old one's place. Deleting the new
// summary brings the old one back. Remake returns the record of the last step.
//
// Only the summary that applies at its anchor can be made again; any other is a
// fault.Conflict. The offline digest writes the summary only if the setting
// digest is always.
func (s *Service) Remake(ctx context.Context, conversationID, summaryID uuid.UUID, d RemakeDemand) (_ tree.Compaction, err error) {
	defer fault.Wrap(&err, "summarize.Remake(%s, %s)", conversationID, summaryID)
	req := compactionRequest{trigger: TriggerRequest, demand: &Demand{Instructions: d.Instructions}}
	if err := req.demand.check(); err != nil {
		return tree.Compaction{}, err
	}
	if d.Model != "" {
		c, _ := s.summarizer.(Cascade)
		if req.with, err = c.only(d.Model); err != nil {
			return tree.Compaction{}, err
		}
	}
	summary, err := s.store.Summary(ctx, conversationID, summaryID)
	if err != nil {
		return tree.Compaction{}, err
	}
	applies, err := s.store.ApplicableSummary(ctx, conversationID, summary.AnchorID)
	if err != nil {
		return tree.Compaction{}, err
	}
	if applies != summaryID {
		return tree.Compaction{}, fault.New(fault.Conflict, "summary_replaced", "summary_id",
			"At its anchor another summary applies by now, %s: make that one again, or delete it first.", applies)
	}
	r, err := s.remake(ctx, summary, req)
	if err != nil {
		return tree.Compaction{}, err
	}
	return r.record(), nil
}

// remake makes a summary again in steps, and lands the last of them at its anchor.
func (s *Service) remake(ctx context.Context, summary tree.Summary, req compactionRequest) (r result, err error) {
	req = s.within(ctx, req)
	all, err := s.store.Summaries(ctx, summary.ConversationID)
	if err != nil {
		return r, err
	}
	without := []uuid.UUID{summary.ID}
	byDigest, err := s.madeByDigest(ctx, summary.ConversationID, all)
	if err != nil {
		return r, err
	}
	for id, made := range byDigest {
		if made && id != summary.ID {
			without = append(without, id)
		}
	}
	for {
		k, goal, err := s.remakeStep(ctx, summary, without, req, &r)
		if err != nil {
			return r, err
		}
		r.steps = append(r.steps, k)
		if k.Outcome != tree.OutcomeSaved || goal == uuid.Nil {
			return r, nil
		}
		if !req.until.IsZero() && time.Now().After(req.until) {
			r.more = true
			return r, nil
		}
	}
}

func (s *Service) remakeStep(ctx context.Context, summary tree.Summary, without []uuid.UUID, req compactionRequest, r *result) (k tree.Compaction, goal uuid.UUID, err error) {
	ctx, end := s.begin(ctx, summary.ConversationID, summary.AnchorID, req.trigger)
	defer func() { end(k, err) }()
	start := time.Now()
	a, err := s.reassess(ctx, summary, without, req)
	if err != nil {
		return k, goal, err
	}
	return s.carryOut(ctx, a, req, uuid.Nil, start, r)
}

// reassess plans what a summary did once more, as if it and others were not
// there.
func (s *Service) reassess(ctx context.Context, summary tree.Summary, without []uuid.UUID, req compactionRequest) (a assessment, err error) {
	for {
		if a.view, err = s.store.View(ctx, summary.ConversationID, summary.AnchorID, wholeBranch, tree.Skeleton(), tree.Without(without...)); err != nil {
			return a, err
		}
		cutoff := slices.IndexFunc(a.view.Tail, func(m tree.PathMessage) bool { return m.ID == summary.Range.LastSummarizedID })
		if cutoff < 0 && a.view.Summary != nil {
			// One that folds no less, from an import say, is no step on the way.
			without = append(slices.Clip(without), a.view.Summary.ID)
			continue
		}
		if a.settings, err = s.windowOf(a.view, Window{}); err != nil {
			return a, err
		}
		a.view.Tail = weigh(a.view.Tail, s.count)
		if a.view, err = s.withTask(ctx, a.view, a.settings); err != nil {
			return a, err
		}
		if a.over = &summary; cutoff < 0 {
			return assessment{view: a.view, settings: a.settings, reason: ReasonNothingToRemake}, nil
		}
		a.plan = planTo(a.view, a.settings, cutoff+1, len(a.view.Tail)-1)
		return a, s.withinCost(ctx, &a, req)
	}
}
