package summarize

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// An assessment holds the state of a branch and the plan of its next compaction.
type assessment struct {
	view     tree.View // without bodies; its messages' tokens are what they cost in a context
	settings Settings
	plan     *Plan  // nil where there is nothing to do
	reason   Reason // why not
	capped   string // why no model may be asked; "" where one may be
	quiet    room   // what may be added to a branch that waits; see waits and withinCost

	over *tree.Summary // that is to be made again; nil where messages are folded for the first time. The view is as if it were not there
}

// wholeBranch is a budget that no branch is over.
const wholeBranch = math.MaxInt64 / 2

// assess reads the branch and plans its compaction. A goal is the cutoff of a plan
// of which a part is done; uuid.Nil for none.
func (s *Service) assess(ctx context.Context, conversationID, headID uuid.UUID, req compactionRequest, goal uuid.UUID) (a assessment, err error) {
	if req.over != nil {
		a, err = s.planAgain(ctx, req)
	} else {
		a, err = s.plan(ctx, conversationID, headID, req, goal)
	}
	if err == nil {
		err = s.withinCost(ctx, &a, req)
	}
	return a, err
}

func (s *Service) plan(ctx context.Context, conversationID, headID uuid.UUID, req compactionRequest, goal uuid.UUID) (a assessment, err error) {
	if a.view, err = s.store.View(ctx, conversationID, headID, wholeBranch, tree.Skeleton()); err != nil {
		return a, err
	}
	if a.settings, err = s.windowOf(a.view, req.window); err != nil {
		return a, err
	}
	a.view.Tail = weigh(a.view.Tail, s.count)
	if summary := a.view.Summary; summary != nil {
		shown := *summary
		shown.Tokens += acknowledged(a.view, 0, s.count)
		if a.settings.Recall {
			shown.Tokens += prompt.RecallTokens(s.count)
		}
		a.view.Summary = &shown
	}
	if a.view, err = s.withTask(ctx, a.view, a.settings); err != nil {
		return a, err
	}
	if goal != uuid.Nil {
		if a.plan, a.reason = planOn(a.view, a.settings, req.demand, goal); a.plan != nil || req.demand != nil {
			return a, nil
		}
	}
	if a.plan, a.reason = MakePlan(a.view, a.settings, req.demand); a.plan == nil || req.demand != nil || req.insists {
		return a, nil
	}
	quiet, why, err := s.waits(ctx, a)
	if why != "" {
		a.plan, a.reason, a.quiet = nil, why, quiet
	}
	return a, err
}

// failedInterval is after what time a branch whose compaction failed is tried
// again though it has hardly grown: models come back.
const failedInterval = time.Hour

// waits says why the settings ask in vain, "" where they don't: where the last compactions left
// the branch as it was, the next waits until it has grown by an eighth of its
// trigger, after two in vain by two eighths, after three by four, and so on. So
// a summarizer that gains nothing is called as often as the logarithm of what is
// said to it. The records tell, so this holds for all servers, and after they
// are started again.
//
// A branch that has stopped to fit its window doesn't wait: until now nothing
// was tried for that.
func (s *Service) waits(ctx context.Context, a assessment) (left room, why Reason, err error) {
	unfolded := make(map[uuid.UUID]bool, len(a.view.Tail))
	for _, m := range a.view.Tail {
		unfolded[m.ID] = true
	}
	// A compaction of this stretch of the branch has its cutoff there. What was
	// tried before the last summary was saved is over.
	last, n, err := s.inVain(ctx, a.view.ConversationID, a.settings, func(k tree.Fruitless) bool { return k.RemadeID == uuid.Nil && unfolded[k.CutoffID] })
	if err != nil {
		return left, "", err
	}
	prefix := tree.Tokens(a.view.Prefix)
	b, used := a.settings.beside(prefix), contextTokens(a.view)
	switch {
	case n == 0,
		used > b.Available && last.TokensBefore <= b.Available,
		last.Outcome == tree.OutcomeFailed && time.Since(last.CreatedAt) > failedInterval:
		return left, "", nil
	}
	growth := func(first int) int { return max(1, first) << min(n-1, 24) }
	left = room{tokens: growth((b.Trigger-prefix)/8) - (used - last.TokensBefore), messages: 1 << 30}
	if used <= b.Available {
		left.tokens = min(left.tokens, b.Available-used+1)
	}
	if every := a.settings.EveryNMessages; every > 0 {
		left.messages = growth(every/8) - (contextMessages(a.view) - last.MessagesBefore)
	}
	switch {
	case !left.some():
		return left, "", nil
	case last.Outcome == tree.OutcomeFailed:
		return left, ReasonFailed, nil
	}
	return left, ReasonWaits, nil
}

// inVain returns the newest of those compactions in vain that count, and how many
// they are.
func (s *Service) inVain(ctx context.Context, conversationID uuid.UUID, settings Settings, counts func(tree.Fruitless) bool) (last tree.Fruitless, n int, err error) {
	tried, err := s.store.Summaries().Fruitless(ctx, conversationID, settings.json())
	for _, k := range slices.Backward(tried) { // the oldest first
		if counts(k) {
			last, n = k, n+1
		}
	}
	return last, n, err
}

// withTask pins the first user message where a summary keeps it and the settings
// keep it because tools were called in its turn, and no other task was given since.
// Whether they were, the tree tells.
func (s *Service) withTask(ctx context.Context, v tree.View, settings Settings) (tree.View, error) {
	i := firstUser(v, v.Kept)
	if i < 0 || settings.KeepFirstUser != KeepFirstAuto || v.Kept[i].Pinned || otherTask(v.Tail, v.Kept[i].ID) {
		return v, nil
	}
	calls, err := s.store.CallsTools(ctx, v.ConversationID, v.Kept[i].ID)
	v.Kept[i].Pinned = calls
	return v, err
}
