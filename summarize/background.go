package summarize

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A Round limits one turn of background work on a branch.
type Round struct {
	Until   time.Time // no step begins after this time
	Insists bool      // work even if the branch waits, because a repeated attempt has waited already
}

// Progress is the result of a Round.
type Progress struct {
	More   bool          // the time ended before everything was folded
	Failed error         // why the last step failed, if another attempt may succeed; nil otherwise
	Away   time.Duration // with Failed: no provider answered, and one may be asked again after this time
}

// CompactDue compacts a branch if the settings ask for it, in as many steps as
// there is time for. A step that is done stays, even if a later one fails. If the
// offline digest had a part in the summary that applies then, a model makes the
// summary again from the messages. Errors are those of the database and of ctx: see
// TroubleOf.
func (s *Service) CompactDue(ctx context.Context, conversationID, headID uuid.UUID, round Round) (p Progress, err error) {
	defer fault.Wrap(&err, "summarize.CompactDue(%s, head %s)", conversationID, headID)
	req := compactionRequest{trigger: TriggerAppend, insists: round.Insists, until: round.Until}
	r, err := s.compact(ctx, conversationID, headID, req)
	if err != nil {
		return p, err
	}
	switch p.More = r.more; {
	case r.more:
	case r.last().Outcome == tree.OutcomeFailed && !r.final:
		p.Failed, p.Away = fmt.Errorf("compaction %s of the branch that ends in %s: %s", r.last().ID, headID, r.last().Reason), r.away
	default:
		return s.replaceDigest(ctx, conversationID, headID, req)
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
