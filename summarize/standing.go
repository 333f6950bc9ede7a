package summarize

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A Standing is what a check of a branch found out. It holds for the branches that go
// on from the head, too, until a summary comes or goes or messages are pruned.
type Standing struct {
	tokens   int  // of the path, that its context doesn't have: what the summary stands for, less the summary
	messages int  // of the path, that are not in the tail
	digest   bool // its summary is to be made again, and may be now

	answeredBy string // the model of the newest reply, whose window it is; "" where none is known

	// Up to these nothing is to be done though the branch is past its trigger, because
	// the last compactions were in vain.
	quietTokens, quietMessages int
	until                      time.Time // then it is looked at again: models come back, and settings change
}

const standingAge = time.Minute

// room is how much may be added to a branch.
type room struct{ tokens, messages int }

func (r room) some() bool { return r.tokens > 0 && r.messages > 0 }

// Check reports whether a branch is due for background work: the settings ask for a
// compaction, or a model is to make its summary again. known is the Standing of the
// branch or of one that it goes on from; nil where that isn't known. now is that of
// the branch; nil where it wasn't needed.
//
// It reads nothing where the settings ask for nothing or the whole path is short. It
// walks no further than the trigger, once for a Standing. Only past the trigger it
// plans, which reads the branch up to its summary.
func (s *Service) Check(ctx context.Context, conversationID uuid.UUID, g tree.Growth, b tree.GrownBranch, known *Standing) (due bool, now *Standing, err error) {
	defer fault.Wrap(&err, "summarize.Check(%s, head %s)", conversationID, b.HeadID)
	answeredBy := b.AnsweredBy
	if answeredBy == "" && known != nil {
		answeredBy = known.answeredBy
	}
	settings, over, err := s.dueness(conversationID, g, b, answeredBy)
	if err != nil || !settings.Compaction.automatic() {
		return false, known, err
	}
	if known != nil {
		copied := *known
		now = &copied
		if answeredBy != now.answeredBy {
			now.answeredBy, now.until = answeredBy, time.Time{}
		}
	}
	if !over(Standing{}) {
		return false, now, nil
	}
	if now == nil {
		if now, err = s.standing(ctx, conversationID, b, settings); err != nil {
			return false, nil, err
		}
		if now.answeredBy != answeredBy {
			if _, over, err = s.dueness(conversationID, g, b, now.answeredBy); err != nil {
				return false, nil, err
			}
		}
	}
	switch {
	case now.digest:
		return true, now, nil
	case !over(*now), int(b.PathTokens) < now.quietTokens && b.Depth < now.quietMessages && time.Now().Before(now.until):
		return false, now, nil
	}
	a, err := s.assess(ctx, conversationID, b.HeadID, compactionRequest{trigger: TriggerAppend}, uuid.Nil)
	if err != nil {
		return false, nil, err
	}
	now.quietTokens, now.quietMessages, now.until = int(b.PathTokens)+a.quiet.tokens, b.Depth+a.quiet.messages, time.Now().Add(standingAge)
	return a.plan != nil, now, nil
}

// dueness returns the settings of a branch that a model answers, and whether a Standing
// is over what they allow.
func (s *Service) dueness(conversationID uuid.UUID, g tree.Growth, b tree.GrownBranch, answeredBy string) (Settings, func(Standing) bool, error) {
	settings, err := s.windowOf(tree.View{ConversationID: conversationID, Settings: g.Settings, AnsweredBy: answeredBy}, Window{})
	trigger := settings.beside(b.PrefixTokens).Trigger
	return settings, func(of Standing) bool {
		return int(b.PathTokens)-of.tokens > trigger || settings.EveryNMessages > 0 && b.Depth+1-max(of.messages, b.PrefixMessages) >= settings.EveryNMessages
	}, err
}

// standing reads a branch as far as its trigger.
func (s *Service) standing(ctx context.Context, conversationID uuid.UUID, b tree.GrownBranch, settings Settings) (*Standing, error) {
	trigger := settings.beside(b.PrefixTokens).Trigger
	v, err := s.store.View(ctx, conversationID, b.HeadID, int64(trigger), tree.Skeleton())
	if err != nil {
		return nil, err
	}
	whole := v.Whole() + acknowledged(v, 0, s.count)
	if v.Summary != nil && settings.Recall {
		whole += prompt.RecallTokens(s.count)
	}
	digest, err := s.waiting(ctx, v, settings)
	if err == nil && digest {
		digest, err = s.mayRetry(ctx, v, settings)
	}
	return &Standing{tokens: int(b.PathTokens) - whole, messages: len(v.Prefix) + v.Folded, digest: digest, answeredBy: v.AnsweredBy}, err
}
