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

// madeByDigest tells of summaries of a conversation which the offline digest made, or
// were made of one that it made. Where a summary that was merged is undone since, the
// record of its compaction tells what wrote it.
func madeByDigest(summaries []tree.Summary, writings []tree.Writing) map[uuid.UUID]bool {
	all := make(map[uuid.UUID]tree.Writing, len(writings))
	for _, w := range writings {
		all[w.SummaryID] = w
	}
	for _, summary := range summaries { // some are of an import or a fork
		all[summary.ID] = tree.Writing{PriorSummaryID: summary.Range.PriorSummaryID, Model: summary.Range.Model}
	}
	made := make(map[uuid.UUID]bool, len(summaries))
	for _, summary := range summaries {
		at, known := all[summary.ID], true
		for n := 0; known && at.Model != digest.Name && n < len(all); n++ { // an import may go round in a circle
			at, known = all[at.PriorSummaryID]
		}
		made[summary.ID] = at.Model == digest.Name
	}
	return made
}

// digests returns the summaries of a conversation that madeByDigest tells of.
func (s *Service) digests(ctx context.Context, conversationID uuid.UUID) (map[uuid.UUID]bool, error) {
	summaries, err := s.store.Summaries().All(ctx, conversationID)
	if err != nil {
		return nil, err
	}
	writings, err := s.store.Summaries().Writings(ctx, conversationID)
	return madeByDigest(summaries, writings), err
}

// resummarizes tells whether summaries of the digest are to be made again at all.
func (s *Service) resummarizes(settings Settings) bool {
	return s.summarizer != nil && settings.Digest != DigestAlways && settings.Compaction.automatic()
}

// remakes tells whether the summary that applies to a branch is to be made again by a
// model, and may be now. None may be asked where the conversation's summaries have cost
// enough. After failures, such as refusals of the models, the next attempt comes late:
// after an hour, and after twice the time with each.
func (s *Service) remakes(ctx context.Context, v tree.View, settings Settings) (bool, error) {
	if v.Summary == nil || v.Folded == 0 || !s.resummarizes(settings) {
		return false, nil
	}
	if of := v.Summary.Range; of.Model != digest.Name {
		if of.PriorSummaryID == uuid.Nil {
			return false, nil
		}
		if made, err := s.digests(ctx, v.ConversationID); err != nil || !made[v.Summary.ID] {
			return false, err
		}
	}
	if capped, err := s.overCost(ctx, v.ConversationID, settings); err != nil || capped != "" {
		return false, err
	}
	last, times, err := s.inVain(ctx, v.ConversationID, settings, func(k tree.Fruitless) bool {
		return k.RemadeID == v.Summary.ID && (k.Outcome == tree.OutcomeNoGain || k.Outcome == tree.OutcomeFailed)
	})
	return err == nil && (times == 0 || time.Since(last.CreatedAt) > failedInterval<<min(times-1, 10)), err
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
	if err != nil {
		return p, err
	}
	settings, err := s.windowOf(v, Window{})
	if err != nil {
		return p, err
	}
	if now, err := s.remakes(ctx, v, settings); err != nil || !now {
		return p, err
	}
	if left := s.spares(); left > 0 {
		return Progress{Failed: errNobodyAnswered, Away: left}, nil
	}
	r, err := s.remake(ctx, *v.Summary, req)
	if p.More = r.more; r.away > 0 {
		p.Failed, p.Away = errNobodyAnswered, r.away
	}
	return p, err
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
	summary, err := s.store.Summaries().One(ctx, conversationID, summaryID)
	if err != nil {
		return tree.Compaction{}, err
	}
	applies, err := s.store.Summaries().Applicable(ctx, conversationID, summary.AnchorID)
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
func (s *Service) remake(ctx context.Context, summary tree.Summary, req compactionRequest) (result, error) {
	made, err := s.digests(ctx, summary.ConversationID)
	if err != nil {
		return result{}, err
	}
	made[summary.ID] = true
	maps.DeleteFunc(made, func(_ uuid.UUID, made bool) bool { return !made })
	req.over, req.without = &summary, slices.Collect(maps.Keys(made))
	return s.compact(ctx, summary.ConversationID, summary.AnchorID, req)
}

// planAgain plans what a summary did once more, as if it and others were not there.
func (s *Service) planAgain(ctx context.Context, req compactionRequest) (a assessment, err error) {
	for {
		if a.view, err = s.store.View(ctx, req.over.ConversationID, req.over.AnchorID, wholeBranch, tree.Skeleton(), tree.Without(req.without...)); err != nil {
			return a, err
		}
		cutoff := slices.IndexFunc(a.view.Tail, func(m tree.PathMessage) bool { return m.ID == req.over.Range.LastSummarizedID })
		if cutoff < 0 && a.view.Summary != nil {
			// One that folds no less, from an import say, is no step on the way.
			req.without = append(slices.Clip(req.without), a.view.Summary.ID)
			continue
		}
		if a.settings, err = s.windowOf(a.view, Window{}); err != nil {
			return a, err
		}
		a.view.Tail = weigh(a.view.Tail, s.count)
		if a.view, err = s.withTask(ctx, a.view, a.settings); err != nil {
			return a, err
		}
		if cutoff < 0 {
			a.reason = ReasonNothingToRemake
			return a, nil
		}
		a.over, a.plan = req.over, planTo(a.view, a.settings, cutoff+1, len(a.view.Tail)-1)
		return a, nil
	}
}
