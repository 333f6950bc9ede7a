package summarize

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A Standing says how far a branch may go on before it is looked at again. It holds for
// the branches that go on from the head, too, until a summary comes or goes or messages
// are pruned.
type Standing struct {
	settings         Settings  // that it was found out by
	answeredBy       string    // the model of the newest reply, whose window it is; "" where none is known
	tokens, messages int       // of the path: with fewer of both, nothing is to be done
	until            time.Time // then it is looked at again all the same: models come back; zero: never
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
	v := tree.View{ConversationID: conversationID, Settings: g.Settings, AnsweredBy: b.AnsweredBy}
	if known != nil {
		copied := *known
		now = &copied
		v.AnsweredBy = cmp.Or(v.AnsweredBy, known.answeredBy)
		now.answeredBy = v.AnsweredBy
	}
	settings, err := s.windowOf(v, Window{})
	if err != nil || !settings.Compaction.automatic() {
		return false, now, err
	}
	path := int(b.PathTokens)
	if left(settings, b, path, b.PrefixMessages).some() {
		return false, now, nil
	}
	if now != nil && now.settings == settings && path < now.tokens && b.Depth < now.messages && (now.until.IsZero() || time.Now().Before(now.until)) {
		return false, now, nil
	}
	if v, err = s.store.View(ctx, conversationID, b.HeadID, int64(settings.beside(b.PrefixTokens).Trigger), tree.Skeleton()); err != nil {
		return false, nil, err
	}
	if settings, err = s.windowOf(v, Window{}); err != nil {
		return false, nil, err
	}
	now = &Standing{settings: settings, answeredBy: v.AnsweredBy}
	if remakes, err := s.remakes(ctx, v, settings); err != nil || remakes {
		return remakes, now, err
	}
	whole := v.Whole() + acknowledged(v, 0, s.count)
	if v.Summary != nil && settings.Recall {
		whole += prompt.RecallTokens(s.count)
	}
	more := left(settings, b, whole, max(len(v.Prefix)+v.Folded, b.PrefixMessages))
	if !more.some() {
		a, err := s.assess(ctx, conversationID, b.HeadID, compactionRequest{trigger: TriggerAppend}, uuid.Nil)
		if err != nil {
			return false, nil, err
		}
		due, more, now.until = a.plan != nil, a.quiet, time.Now().Add(standingAge)
	}
	now.tokens, now.messages = path+more.tokens, b.Depth+more.messages
	return due, now, nil
}

// left is how much may be added to a branch before the settings ask for a compaction:
// to one whose context has so many tokens, and of whose messages so many aren't in the
// tail.
func left(s Settings, b tree.GrownBranch, tokens, outside int) room {
	r := room{tokens: s.beside(b.PrefixTokens).Trigger - tokens + 1, messages: math.MaxInt32}
	if s.EveryNMessages > 0 {
		r.messages = s.EveryNMessages - (b.Depth + 1 - outside)
	}
	return r
}
