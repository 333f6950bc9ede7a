package summarize

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A look is what a branch has become, and what a compaction would do now.
type look struct {
	view     tree.View // without bodies; its messages' tokens are what they cost in a context
	settings Settings
	plan     *Plan  // nil where there is nothing to do
	reason   Reason // why not
	left     Room   // where there is nothing to do: what may be added before the next look

	over *tree.Summary // that is to be made again; nil where messages are folded for the first time. The view is as if it were not there
}

// wholeBranch is a budget that no branch is over.
const wholeBranch = math.MaxInt64 / 2

// look reads the branch and plans its compaction. A goal is the cutoff of a plan
// of which a part is done; uuid.Nil for none.
func (s *Service) look(ctx context.Context, conversationID, headID uuid.UUID, o order, goal uuid.UUID) (l look, err error) {
	if l.view, err = s.store.View(ctx, conversationID, headID, wholeBranch, tree.Skeleton()); err != nil {
		return l, err
	}
	if l.settings, err = s.windowOf(l.view, o.window); err != nil {
		return l, err
	}
	l.view.Tail = weigh(l.view.Tail, s.count)
	if summary := l.view.Summary; summary != nil && l.settings.Recall {
		shown := *summary
		shown.Tokens += prompt.RecallTokens(s.count)
		l.view.Summary = &shown
	}
	if l.view, err = s.withTask(ctx, l.view, l.settings); err != nil {
		return l, err
	}
	l.left = distance(l.view, l.settings)
	if goal != uuid.Nil {
		if l.plan, l.reason = planOn(l.view, l.settings, o.demand, goal); l.plan != nil || o.demand != nil {
			return l, nil
		}
	}
	if l.plan, l.reason = MakePlan(l.view, l.settings, o.demand); l.plan == nil || o.demand != nil || o.insists {
		return l, nil
	}
	left, why, err := s.waits(ctx, l)
	if why != "" {
		l.plan, l.reason, l.left = nil, why, left
	}
	return l, err
}

// failedPatience is after what time a branch whose compaction failed is tried
// again though it has hardly grown: models come back.
const failedPatience = time.Hour

// waits says why the settings ask in vain, "" where they don't: where the last compactions left
// the branch as it was, the next waits until it has grown by an eighth of its
// trigger, after two in vain by two eighths, after three by four, and so on. So
// a summarizer that gains nothing is called as often as the logarithm of what is
// said to it. The records tell, so this holds for all servers, and after they
// are started again.
//
// A branch that has stopped to fit its window doesn't wait: until now nothing
// was tried for that.
func (s *Service) waits(ctx context.Context, l look) (left Room, why Reason, err error) {
	tried, err := s.store.FruitlessCompactions(ctx, l.view.ConversationID, l.settings.json())
	if err != nil || len(tried) == 0 {
		return left, "", err
	}
	unfolded := make(map[uuid.UUID]bool, len(l.view.Tail))
	for _, m := range l.view.Tail {
		unfolded[m.ID] = true
	}
	// A compaction of this stretch of the branch has its cutoff there. What was
	// tried before the last summary was saved is over.
	var last tree.Fruitless
	n := 0
	for _, k := range tried {
		if !unfolded[k.CutoffID] {
			continue
		}
		if n++; n == 1 {
			last = k
		}
	}
	prefix := tree.Tokens(l.view.Prefix)
	b, used := l.settings.beside(prefix), contextTokens(l.view)
	switch {
	case n == 0,
		used > b.Available && last.TokensBefore <= b.Available,
		last.Outcome == tree.OutcomeFailed && time.Since(last.CreatedAt) > failedPatience:
		return left, "", nil
	}
	growth := func(first int) int { return max(1, first) << min(n-1, 24) }
	left = Room{Tokens: growth((b.Trigger-prefix)/8) - (used - last.TokensBefore), Messages: 1 << 30}
	if used <= b.Available {
		left.Tokens = min(left.Tokens, b.Available-used+1)
	}
	if every := l.settings.EveryNMessages; every > 0 {
		messages := len(l.view.Prefix) + len(l.view.Tail)
		if l.view.Summary != nil {
			messages++
		}
		left.Messages = growth(every/8) - (messages - last.MessagesBefore)
	}
	switch {
	case !left.Some():
		return left, "", nil
	case last.Outcome == tree.OutcomeFailed:
		return left, ReasonFailed, nil
	}
	return left, ReasonWaits, nil
}

// withTask pins the first user message where a summary keeps it and the settings
// keep it because tools were called in its turn. Whether they were, the tree tells.
func (s *Service) withTask(ctx context.Context, v tree.View, settings Settings) (tree.View, error) {
	i := firstUser(v, v.Kept)
	if i < 0 || settings.KeepFirstUser != KeepFirstAuto || v.Kept[i].Pinned {
		return v, nil
	}
	calls, err := s.store.CallsTools(ctx, v.ConversationID, v.Kept[i].ID)
	v.Kept[i].Pinned = calls
	return v, err
}
