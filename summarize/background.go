package summarize

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A Check is the result of looking at a branch.
type Check struct {
	Due          bool        // the settings ask for a compaction
	ResummaryDue bool        // its summary is to be made again; see Resummarize
	Room         Room        // the headroom before the next assessment; if a compaction is due, the headroom while its job is queued
	Tail         []uuid.UUID // the branch's messages that aren't folded, oldest first
}

// Check returns whether the settings ask for a compaction of a branch. It reads
// through the given store, which may be over a transaction.
func (s *Service) Check(ctx context.Context, store *tree.Store, conversationID, headID uuid.UUID) (c Check, err error) {
	defer fault.Wrap(&err, "summarize.Check(%s, head %s)", conversationID, headID)
	a, err := s.Over(store).assess(ctx, conversationID, headID, compactionRequest{trigger: TriggerAppend}, uuid.Nil)
	if err != nil {
		return c, err
	}
	if c = (Check{Due: a.plan != nil, Room: a.left, Tail: make([]uuid.UUID, len(a.view.Tail))}); c.Due {
		c.Room = whileQueued(a.settings)
	}
	for i, m := range a.view.Tail {
		c.Tail[i] = m.ID
	}
	c.ResummaryDue, err = s.Over(store).ready(ctx, a.view, a.settings)
	return c, err
}

// A Round limits one turn of background work on a branch.
type Round struct {
	Until   time.Time // no step begins after this time
	NoTrial bool      // ask no model whose last calls failed
	Insists bool      // work even if the branch waits, because a repeated attempt has waited already
}

// Progress is the result of a Round.
type Progress struct {
	Room   Room          // of the branch now
	More   bool          // the time ended before everything was folded
	Failed error         // why the last step failed, if another attempt may succeed; nil otherwise
	Away   time.Duration // with Failed: no provider answered, and one may be asked again after this time
}

// CompactDue compacts a branch if the settings ask for it, in as many steps as
// there is time for. A step that is done stays, even if a later one fails.
// Errors are those of the database and of ctx: see TroubleOf.
func (s *Service) CompactDue(ctx context.Context, conversationID, headID uuid.UUID, round Round) (p Progress, err error) {
	defer fault.Wrap(&err, "summarize.CompactDue(%s, head %s)", conversationID, headID)
	r, err := s.compact(ctx, conversationID, headID, compactionRequest{trigger: TriggerAppend, noTrial: round.NoTrial, insists: round.Insists, until: round.Until})
	if err != nil {
		return p, err
	}
	p = Progress{Room: r.left, More: r.more}
	if len(r.steps) > 0 && r.last().Outcome == tree.OutcomeFailed && !r.final {
		p.Failed, p.Away = fmt.Errorf("compaction %s of the branch that ends in %s: %s", r.last().ID, headID, r.last().Reason), r.away
	}
	return p, nil
}

// StepTimeout returns the longest time of one step of a compaction: the time of
// its summarizer, and a minute for the database and the digest.
func (s *Service) StepTimeout() time.Duration {
	timeout := time.Duration(0)
	switch with := s.summarizer.(type) {
	case nil:
	case Bounded:
		timeout = with.Timeout()
	default:
		timeout = unboundedTimeout
	}
	return time.Minute + timeout
}
