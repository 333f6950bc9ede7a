package summarize

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// A Trigger says who asks for a compaction.
type Trigger string

const (
	TriggerAppend  Trigger = "append"  // a background job after an append
	TriggerReply   Trigger = "reply"   // a reply that wouldn't fit
	TriggerRequest Trigger = "request" // somebody
)

// A compactionRequest holds the parameters of a compaction.
type compactionRequest struct {
	trigger Trigger
	demand  *Demand // nil: by the settings alone
	window  Window
	with    Summarizer // writes the summary; nil: that of the Service
	insists bool       // though the branch waits: a job's next attempt, which has waited already
	until   time.Time  // when no more steps begin; zero: when all is done
	models  time.Time  // when the models' time is over, and the digest's comes; zero: never

	over    *tree.Summary // that is made again, and whose anchor the new one gets; nil: messages are folded for the first time
	without []uuid.UUID   // with over: summaries that count as not there
}

// A result is what became of a branch.
type result struct {
	steps []tree.Compaction // one at least; all but the last were saved
	fits  bool              // the branch fits its window, after a step that was saved
	more  bool              // the time was over before all was folded
	final bool              // the last step failed, and the same step would fail again
	away  time.Duration     // the last step failed as no provider answered: when to ask again; else 0
}

func (r result) last() tree.Compaction { return r.steps[len(r.steps)-1] }

// Compact compacts a branch: it plans, has the summary written, and saves the
// summary unless a newer one has overtaken it. A head of uuid.Nil is the active
// head. The record of the compaction is stored and returned. Only failures of
// the database and the end of ctx are errors. With a demand, it folds what may
// be folded even below the trigger.
//
// A branch that is too long for one call of the summarizer is compacted in
// steps. Each step is a compaction with its own summary and record, so that
// finished steps stay. The returned record is that of the last summary. If ctx
// ended before the last step, the record's reason says so.
//
// Callers of one Service that ask for the same at the same time get one compaction
// and its record.
//
// No connection to the database is held while a model is called. Compact takes
// as long as the summarizers, each bounded by its timeout, and ends before a
// deadline of ctx.
func (s *Service) Compact(ctx context.Context, conversationID, headID uuid.UUID, t Trigger, d *Demand) (_ tree.Compaction, err error) {
	defer fault.Wrap(&err, "summarize.Compact(%s, head %s)", conversationID, headID)
	if err := s.store.CheckReader(ctx, conversationID); err != nil {
		return tree.Compaction{}, err
	}
	key := flightKey{tenant: s.store.TenantID(), conversation: conversationID, head: headID, trigger: t, demanded: d != nil}
	if d != nil {
		key.demand = *d
	}
	r, err := s.atOnce(ctx, key, func() (result, error) {
		return s.compact(ctx, conversationID, headID, compactionRequest{trigger: t, demand: d})
	})
	if err != nil {
		return tree.Compaction{}, err
	}
	return r.record(), nil
}

// record is the record of the last summary that was saved, or else of why none
// was.
func (r result) record() tree.Compaction {
	k := r.last()
	if n := len(r.steps); n > 1 && k.Outcome != tree.OutcomeSaved {
		k = r.steps[n-2]
	}
	if r.more {
		k.Reason += " It is one step of several, and there was no time for the next: ask again."
	}
	return k
}

// reserve is what a deadline leaves for the digest and the database when the
// models' time is over, or a quarter of the time where that is less.
const reserve = 10 * time.Second

// within returns the request with the times that a deadline of ctx leaves.
func (s *Service) within(ctx context.Context, req compactionRequest) compactionRequest {
	if deadline, ok := ctx.Deadline(); ok {
		over := deadline.Add(-min(reserve, time.Until(deadline)/4))
		if s.settings.Digest != DigestNever {
			req.models = over
		}
		if req.until.IsZero() || req.until.After(over) {
			req.until = over
		}
	}
	return req
}

// compact compacts a branch in as many steps as it takes, and as there is time
// for. Steps that are done when one fails, or when ctx ends, stay.
func (s *Service) compact(ctx context.Context, conversationID, headID uuid.UUID, req compactionRequest) (r result, err error) {
	if err := req.demand.check(); err != nil {
		return r, err
	}
	req = s.within(ctx, req)
	for goal := uuid.Nil; ; {
		var k tree.Compaction
		if k, goal, err = s.step(ctx, conversationID, headID, req, goal, &r); err != nil {
			return r, err
		}
		headID = k.HeadID // another branch may have become active
		if k.Outcome == tree.OutcomeNothingToDo && len(r.steps) > 0 {
			return r, nil // what was left of the goal isn't worth a step
		}
		r.steps = append(r.steps, k)
		if k.Outcome != tree.OutcomeSaved || goal == uuid.Nil {
			return r, nil
		}
		if req.trigger == TriggerReply {
			if r.fits {
				return r, nil
			}
		} else if !req.until.IsZero() && time.Now().After(req.until) {
			r.more = true
			return r, nil
		}
	}
}

// step makes one compaction: it has what is planned written and saved, and what came of
// it recorded. Where it folds less than is planned, because a call takes no more, it
// gives the cutoff that was planned as the goal of the next.
func (s *Service) step(ctx context.Context, conversationID, headID uuid.UUID, req compactionRequest, goal uuid.UUID, r *result) (k tree.Compaction, _ uuid.UUID, err error) {
	ctx, end := s.begin(ctx, conversationID, headID, req.trigger)
	defer func() { end(k, err) }()
	start := time.Now()
	a, err := s.assess(ctx, conversationID, headID, req, goal)
	if err != nil {
		return k, goal, err
	}
	k = record(a, req)
	var pending pendingSummary
	if a.plan != nil {
		if pending, err = s.write(ctx, a, req, k.ID); err != nil {
			return tree.Compaction{}, goal, err
		}
	}
	switch conclude(&k, a, pending); k.Outcome {
	case tree.OutcomeNothingToDo:
		// A background check that found nothing to do leaves no record: there is
		// one after many appends. Nor does a step that isn't needed.
		if req.trigger == TriggerAppend || goal != uuid.Nil {
			return k, goal, nil
		}
	case tree.OutcomeSaved:
		if pending.summary.Over, err = s.expectedSummary(ctx, a, pending); err != nil {
			return tree.Compaction{}, goal, err
		}
	default:
		pending.summary = nil
	}
	if pending.away() {
		r.away = max(s.spares(), llm.ShortestPause)
		// Nobody was asked, so nothing ran: the background comes back to it.
		if req.trigger == TriggerAppend && (a.over != nil || pending.spared()) {
			return k, goal, nil
		}
	}
	k.Duration = time.Since(start)
	recorded, err := s.store.Summaries().Record(ctx, k, pending.summary)
	if pending.summary != nil && TroubleOf(ctx, err) == TroubleRefused {
		k.Outcome, k.Reason, r.final = tree.OutcomeFailed, "The summary can't be stored: "+err.Error(), true // and never will be
		recorded, err = s.store.Summaries().Record(ctx, k, nil)
	}
	if err != nil {
		return tree.Compaction{}, goal, err
	}
	if k = recorded; k.Outcome == tree.OutcomeSaved && a.over == nil {
		r.fits = k.TokensAfter <= a.settings.Budget().Available
	}
	s.report(ctx, k)
	return k, pending.goal, nil
}

// expectedSummary returns the summary that must still apply where the pending
// summary is stored; uuid.Nil means the summary that it merges. A resummary only
// replaces the summary that it was made for. An earlier step of it only has to
// stand on its prior summary.
func (s *Service) expectedSummary(ctx context.Context, a assessment, pending pendingSummary) (uuid.UUID, error) {
	switch {
	case a.over == nil:
		return uuid.Nil, nil
	case pending.goal == uuid.Nil:
		return a.over.ID, nil
	}
	return s.store.Summaries().Applicable(ctx, a.view.ConversationID, pending.plan.AnchorID)
}

// spares is how long no model of the Service will be asked, as their providers
// failed; 0 where one may be.
func (s *Service) spares() time.Duration {
	if c, ok := s.summarizer.(Cascade); ok {
		return c.spares()
	}
	return 0
}

func (s *Service) report(ctx context.Context, k tree.Compaction) {
	level := slog.LevelInfo
	if k.Outcome == tree.OutcomeFailed {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "compaction", "conversation_id", k.ConversationID, "compaction_id", k.ID, "head_id", k.HeadID, "trigger", k.Trigger,
		"outcome", k.Outcome, "reason", k.Reason, "model", k.Model, "folded_messages", k.FoldedMessages,
		"tokens_before", k.TokensBefore, "tokens_after", k.TokensAfter, "prompt_tokens", k.PromptTokens,
		"completion_tokens", k.CompletionTokens, "duration_ms", k.Duration.Milliseconds())
	s.observe(k)
}

// EnsureFits makes a context fit a model's window before a reply. If the
// context doesn't fit and compaction is auto, the branch is compacted until it
// does, within the time limit. A part of the time is reserved for the offline
// digest, which folds what the models have left. A failure is logged and never
// fails the reply: the reply then goes out with the context as it is.
func (s *Service) EnsureFits(ctx context.Context, conversationID, headID uuid.UUID, w Window, limit time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req := compactionRequest{trigger: TriggerReply, window: w}
	a, err := s.assess(bounded, conversationID, headID, req, uuid.Nil)
	if err == nil && (a.plan == nil || a.fits()) {
		return // it fits, or nothing can be done
	}
	if err == nil {
		_, err = s.compact(bounded, conversationID, headID, req)
	}
	if err != nil {
		s.log.WarnContext(ctx, "a branch was not compacted before its reply", "conversation_id", conversationID, "head_id", headID, "error", err)
	}
}
