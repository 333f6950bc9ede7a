package summarize

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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
	written, err := s.store.Writers(ctx, conversationID)
	if err != nil {
		return nil, err
	}
	written = slices.DeleteFunc(written, func(summary tree.Summary) bool { return there[summary.ID] })
	made := madeByDigest(slices.Concat(summaries, written))
	maps.DeleteFunc(made, func(id uuid.UUID, _ bool) bool { return !there[id] })
	return made, nil
}

// resummarizes tells whether summaries of the digest are to be made again at all.
func (s *Service) resummarizes(settings Settings) bool {
	return s.summarizer != nil && settings.Digest != DigestAlways && settings.Compaction == ModeAuto
}

// waiting tells whether a summary that applies to a branch waits to be made
// again by a model.
func (s *Service) waiting(ctx context.Context, v tree.View, settings Settings) (bool, error) {
	switch {
	case v.Summary == nil || !s.resummarizes(settings) || s.known.has(v.Summary.ID):
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
	if err != nil || made[v.Summary.ID] {
		return err == nil, err
	}
	s.known.add(v.Summary.ID)
	return false, nil
}

// resummarizeInterval is how long a summary waits after a failed attempt. The time
// doubles with each failure.
const resummarizeInterval = time.Hour

// mayRetry tells whether a summary that waits may be made now. After failures, such
// as refusals of the models, the next attempt comes late.
func (s *Service) mayRetry(ctx context.Context, v tree.View) (ready bool, err error) {
	times, last, err := s.store.FailedResummaries(ctx, v.ConversationID, v.Summary.ID)
	return err == nil && (times == 0 || time.Since(last) > resummarizeInterval<<min(times-1, 10)), err
}

// Waits reports whether a model is to make the summary that applies to a branch
// again, and may try now.
func (s *Service) Waits(ctx context.Context, conversationID, headID uuid.UUID) (_ bool, err error) {
	defer fault.Wrap(&err, "summarize.Waits(%s, head %s)", conversationID, headID)
	summary, err := s.due(ctx, conversationID, headID)
	return summary != nil, err
}

// due gives the summary that applies to a branch and is to be made again now; nil
// for none.
func (s *Service) due(ctx context.Context, conversationID, headID uuid.UUID) (*tree.Summary, error) {
	if s.summarizer == nil {
		return nil, nil
	}
	v, err := s.store.View(ctx, conversationID, headID, wholeBranch, tree.Skeleton())
	if err != nil || v.Summary == nil {
		return nil, err
	}
	settings, err := s.windowOf(v, Window{})
	if err != nil {
		return nil, err
	}
	ready, err := s.ready(ctx, v, settings)
	if !ready {
		return nil, err
	}
	return v.Summary, nil
}

// ready tells whether a view's summary waits, and may be tried now.
func (s *Service) ready(ctx context.Context, v tree.View, settings Settings) (bool, error) {
	if waits, err := s.waiting(ctx, v, settings); err != nil || !waits {
		return false, err
	}
	return s.mayRetry(ctx, v)
}

// Resummarize makes the summary that applies to a branch again from the messages, if
// the offline digest made it or a summary that it merged. The new summary
// builds on the deepest summary before it that no digest went into. It is made
// in as many steps as there is time for, and hangs at the same anchor. The
// digest never stands in. Errors are those of CompactDue.
func (s *Service) Resummarize(ctx context.Context, conversationID, headID uuid.UUID, round Round) (p Progress, err error) {
	defer fault.Wrap(&err, "summarize.Resummarize(%s, head %s)", conversationID, headID)
	summary, err := s.due(ctx, conversationID, headID)
	if err != nil || summary == nil {
		return p, err
	}
	if left := s.spares(); left > 0 {
		return Progress{Failed: errNobodyAnswered, Away: left}, nil
	}
	r, err := s.remake(ctx, *summary, compactionRequest{trigger: TriggerResummarize, until: round.Until})
	if err != nil {
		return p, err
	}
	if r.last().Outcome == tree.OutcomeNothingToDo {
		s.known.add(summary.ID)
	}
	if p.More = r.more; r.away > 0 {
		p.Failed, p.Away = errNobodyAnswered, r.away
	}
	return p, nil
}

var errNobodyAnswered = errors.New("no model answered")

// Waiting returns heads of a conversation's branches whose summary is to be made
// again by a model and may be tried now, so many at most. There are none while the
// providers of all models fail.
func (s *Service) Waiting(ctx context.Context, conversationID uuid.UUID, most int) (heads []uuid.UUID, err error) {
	defer fault.Wrap(&err, "summarize.Waiting(%s)", conversationID)
	if s.summarizer == nil || s.spares() > 0 {
		return nil, nil
	}
	all, err := s.store.Summaries(ctx, conversationID)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	made, err := s.madeByDigest(ctx, conversationID, all)
	if err != nil {
		return nil, err
	}
	for _, summary := range all {
		if !made[summary.ID] || len(heads) == most {
			continue
		}
		leaf, err := s.store.NewestLeaf(ctx, conversationID, summary.AnchorID)
		if err != nil {
			return nil, err
		}
		if slices.Contains(heads, leaf.ID) {
			continue
		}
		waits, err := s.due(ctx, conversationID, leaf.ID)
		if err != nil {
			return nil, err
		}
		if waits != nil {
			heads = append(heads, leaf.ID)
		}
	}
	return heads, nil
}

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
	a, err := s.reassess(ctx, summary, without)
	if err != nil {
		return k, goal, err
	}
	return s.carryOut(ctx, a, req, uuid.Nil, start, r)
}

// reassess plans what a summary did once more, as if it and others were not
// there.
func (s *Service) reassess(ctx context.Context, summary tree.Summary, without []uuid.UUID) (a assessment, err error) {
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
		return a, nil
	}
}

// knownWhole remembers summaries that need not be made again: no digest went into
// them, and that doesn't change. It forgets the older half when it is full.
type knownWhole struct {
	mu       sync.Mutex
	now, old map[uuid.UUID]struct{}
}

const knownWholeSize = 8192

func (k *knownWhole) has(id uuid.UUID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, now := k.now[id]
	_, old := k.old[id]
	return now || old
}

func (k *knownWhole) add(id uuid.UUID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil || len(k.now) >= knownWholeSize {
		k.now, k.old = make(map[uuid.UUID]struct{}), k.now
	}
	k.now[id] = struct{}{}
}
