package summarize

import (
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A Plan says what a compaction folds, what its summarizer sees, and where the
// summary goes.
type Plan struct {
	CutoffID    uuid.UUID          // last message to be folded
	AnchorID    uuid.UUID          // deepest message that the summarizer sees; the summary hangs there
	PriorID     uuid.UUID          // summary to be merged, uuid.Nil for none
	Fold        []tree.PathMessage // newly folded, oldest first
	LookAhead   []tree.PathMessage // after the cutoff up to the anchor
	Tail        int                // messages after the cutoff
	Kept        []Kept             // folded messages that stay verbatim, oldest first
	DroppedPins []uuid.UUID        // pinned messages that are folded and don't stay, oldest first: there is no room

	FoldTokens int // of Fold
	Replaced   int // tokens that the new summary's message takes the place of: Fold, and the prior summary's message
	Target     int // tokens asked for
}

// Kept is a folded message that stays verbatim.
type Kept struct {
	ID    uuid.UUID
	Limit int // tokens that stay of it, the middle being cut; 0: all
}

// A Demand has the overrides of a compaction on demand.
type Demand struct {
	KeepRecentMessages int    // messages that the tail keeps, instead of keep_ratio; 0: by the settings
	Instructions       string // for the summarizer
	LookAhead          LookAhead
	All                bool // fold the head, too, so that the summary stands for the whole branch, and even where that gains nothing
}

func (d *Demand) lookAhead(s Settings) LookAhead {
	if d != nil && d.LookAhead != "" {
		return d.LookAhead
	}
	return s.LookAhead
}

// A Reason says why there is nothing to do.
type Reason string

const (
	ReasonOff             Reason = "Compaction is off for this conversation."
	ReasonManual          Reason = "Compaction is manual for this conversation, and nobody asked for it."
	ReasonBelowTrigger    Reason = "The context is below its trigger."
	ReasonTailKept        Reason = "All that isn't folded yet is recent, and stays verbatim."
	ReasonTooFew          Reason = "The messages that could be folded are too few to be worth a summary."
	ReasonTooSmall        Reason = "The messages that could be folded have too few tokens to be worth a summary."
	ReasonPrefix          Reason = "The leading system messages fill the window, and no summary can take their place."
	ReasonNoCut           Reason = "There is no point to cut at where no tool call is open."
	ReasonNothingToRemake Reason = "The summary folds nothing but leading system messages."
	ReasonWaits           Reason = "The last compactions of this branch gained nothing: the next waits until the branch has grown further."
	ReasonFailed          Reason = "The last compaction of this branch failed: a job tries it again while no provider answers, and otherwise the next waits until the branch has grown further, or for an hour."
)

// MakePlan decides whether and how the branch is compacted. It is a pure
// function. With a nil demand only the settings count, so below the trigger
// there is no plan. A demand folds everything that may be folded. With a plan,
// the Reason is "".
//
// MakePlan takes a message's Tokens as its cost in the context. Its time grows
// with the number of the view's messages.
func MakePlan(v tree.View, s Settings, d *Demand) (*Plan, Reason) {
	b := s.beside(tree.Tokens(v.Prefix))
	switch {
	case s.Compaction == ModeOff:
		return nil, ReasonOff
	case d == nil && s.Compaction == ModeManual:
		return nil, ReasonManual
	case d == nil && contextTokens(v) <= b.Trigger && (s.EveryNMessages == 0 || len(v.Tail) < s.EveryNMessages):
		return nil, ReasonBelowTrigger
	case d == nil && len(v.Prefix) > 0 && b.Available-tree.Tokens(v.Prefix) < s.MinFoldTokens:
		return nil, ReasonPrefix
	}
	start, reason := foldEnd(v.Tail, s, b, d)
	if d == nil && contextTokens(v) > b.Available {
		start, reason = foldFurther(v, s, b, start, reason)
	}
	if reason != "" {
		return nil, reason
	}
	return planTo(v, s, start, anchorIndex(v.Tail, start, s.AnchorSlackTurns, d.lookAhead(s))), ""
}

// planTo is the plan that folds what stands before start, from what its
// summarizer sees up to anchor.
func planTo(v tree.View, s Settings, start, anchor int) *Plan {
	b := s.beside(tree.Tokens(v.Prefix))
	fold := v.Tail[:start]
	tokens := tree.Tokens(fold)
	anchor = max(anchor, priorAnchor(v))
	p := &Plan{
		CutoffID: v.Tail[start-1].ID, AnchorID: v.Tail[anchor].ID,
		Fold: fold, LookAhead: v.Tail[start : anchor+1], Tail: len(v.Tail) - start,
		FoldTokens: tokens, Replaced: tokens,
	}
	prior := 0 // tokens of the text to be merged
	if v.Summary != nil {
		p.PriorID = v.Summary.ID
		p.Replaced += v.Summary.Tokens
		prior = max(0, v.Summary.Tokens-tree.Tokens(v.Kept))
	}
	p.Target = b.TargetFor(p.Replaced-prior, prior)
	folded := withFirstPinned(v, s, fold)
	p.Kept = chooseKept(folded, min(b.KeepUser, max(leastShare, p.Replaced/keptShare)), b.Pinned)
	for _, m := range folded {
		if m.Pinned && !slices.ContainsFunc(p.Kept, func(k Kept) bool { return k.ID == m.ID }) {
			p.DroppedPins = append(p.DroppedPins, m.ID)
		}
	}
	return p
}

// planOn goes on with a fold that was to end at the goal, of which a part is
// done. What is left of it may be too little to be worth a call.
func planOn(v tree.View, s Settings, d *Demand, goal uuid.UUID) (*Plan, Reason) {
	start := slices.IndexFunc(v.Tail, func(m tree.PathMessage) bool { return m.ID == goal }) + 1
	switch {
	case s.Compaction == ModeOff:
		return nil, ReasonOff
	case start == 0:
		return nil, ReasonTailKept
	case d != nil && d.All:
	case start < s.MinFoldMessages:
		return nil, ReasonTooFew
	case tree.Tokens(v.Tail[:start]) < s.MinFoldTokens:
		return nil, ReasonTooSmall
	}
	return planTo(v, s, start, anchorIndex(v.Tail, start, s.AnchorSlackTurns, d.lookAhead(s))), ""
}

// withResults is the least index from n on before which no call is parted from
// its results.
func withResults(fold []tree.PathMessage, n int) int {
	for n < len(fold) && fold[n].Role == tree.RoleTool {
		n++
	}
	return n
}

// foldEnd is tailStart where what comes before it is worth a summary. A request
// folds little if that is what there is.
func foldEnd(tail []tree.PathMessage, s Settings, b Budget, d *Demand) (int, Reason) {
	start, reason := tailStart(tail, s, b, d)
	switch {
	case reason != "" || d != nil:
		return start, reason
	case start < s.MinFoldMessages:
		return 0, ReasonTooFew
	case tree.Tokens(tail[:start]) < s.MinFoldTokens:
		return 0, ReasonTooSmall
	}
	return start, ""
}

// leastFold is what a fold needs to gain much, in tokens.
const leastFold = 200

// frameTokens is what a summary's message has around its text, 52 tokens, and
// what a digest may have over the target of a small window.
const frameTokens = 60

// foldFurther is where the fold of a branch that doesn't fit ends: where the
// settings say, if it fits then, or else as far as it takes, whatever they say
// of recent messages and least folds. A fold that gains little must make it fit:
// else the next message would ask for another, and so on.
func foldFurther(v tree.View, s Settings, b Budget, start int, reason Reason) (int, Reason) {
	fits := func(start int) bool {
		return tree.Tokens(v.Prefix)+frameTokens+b.Target+tree.Tokens(v.Tail[start:]) <= b.Available
	}
	if reason == "" && fits(start) {
		return start, ""
	}
	s.MinRecentMessages, s.MinFoldMessages, s.MinFoldTokens = 1, 1, min(s.MinFoldTokens, leastFold)
	if further, none := foldEnd(v.Tail, s, b, nil); none == "" && (reason != "" || fits(further)) {
		return further, ""
	}
	s.MinFoldTokens = 1
	if further, none := foldEnd(v.Tail, s, b, nil); none == "" && reason != "" && fits(further) {
		return further, ""
	}
	return start, reason
}

// contextTokens is what the whole branch costs as its context shows it.
func contextTokens(v tree.View) int {
	n := tree.Tokens(v.Prefix) + tree.Tokens(v.Tail)
	if v.Summary != nil {
		n += v.Summary.Tokens
	}
	return n
}

// contextMessages is how many messages that context has, the summary counted as one.
func contextMessages(v tree.View) int {
	n := len(v.Prefix) + len(v.Tail)
	if v.Summary != nil {
		n++
	}
	return n
}

// tailStart gives the index of the first message that stays verbatim; the one
// before it is the cutoff.
func tailStart(tail []tree.PathMessage, s Settings, b Budget, d *Demand) (int, Reason) {
	if d != nil && d.All {
		if n := len(tail); n == 0 || !closedAfter(tail)[n-1] {
			return 0, ReasonNoCut
		}
		return len(tail), ""
	}
	recent, raw := s.MinRecentMessages, 0
	switch counted := s.EveryNMessages > 0 && len(tail) >= s.EveryNMessages; {
	case d != nil && d.KeepRecentMessages > 0:
		recent, raw = d.KeepRecentMessages, len(tail)
	case d != nil:
		// Who asks wants less, even of a tail that the settings would keep.
		raw = fitting(tail, min(b.Keep, tree.Tokens(tail)/2))
	case counted:
		raw = max(fitting(tail, b.Keep), len(tail)-s.EveryNMessages/2)
	default:
		raw = fitting(tail, b.Keep)
	}
	raw = min(raw, len(tail)-recent)
	if raw <= 0 {
		return 0, ReasonTailKept
	}
	closed := closedAfter(tail)
	turn := raw
	for turn > 0 && (tail[turn].Role != tree.RoleUser || !closed[turn-1]) {
		turn--
	}
	// A turn that is larger than the tail's budget can't be kept whole.
	if turn > 0 && tree.Tokens(tail[turn:turnEnd(tail, turn)]) <= b.Keep || d != nil && d.KeepRecentMessages > 0 && turn > 0 {
		return turn, ""
	}
	if at := nearestClosed(tail, closed, raw, len(tail)-recent); at > 0 {
		return at, ""
	}
	return 0, ReasonNoCut
}

// fitting is the smallest index from which the tail is within the budget. The
// last message stays, whatever its size.
func fitting(tail []tree.PathMessage, budget int) int {
	at, sum := len(tail), 0
	for at > 0 && sum+tail[at-1].Tokens <= budget {
		at--
		sum += tail[at].Tokens
	}
	return min(at, len(tail)-1)
}

// turnEnd is the index after the user turn that starts at i.
func turnEnd(tail []tree.PathMessage, i int) int {
	for i++; i < len(tail) && tail[i].Role != tree.RoleUser; i++ {
	}
	return i
}

// closedAfter tells of each message whether no tool call is open after it, so
// that a fold may end there on every branch through it.
func closedAfter(tail []tree.PathMessage) []bool {
	closed := make([]bool, len(tail))
	open := 0
	for i, m := range tail {
		if m.Role == tree.RoleTool {
			open--
		} else {
			open = len(m.Calls) // calls left unanswered stay so once somebody else speaks
		}
		closed[i] = open <= 0
	}
	return closed
}

// nearestClosed is the tail start nearest to raw in tokens, and not after last,
// that has no open call before it, the earlier of two at one distance; 0 where
// there is none.
func nearestClosed(tail []tree.PathMessage, closed []bool, raw, last int) int {
	before, after := raw, raw
	more, less := 0, 0 // tokens that the tail would have more, or less
	for ; before > 0 && !closed[before-1]; before-- {
		more += tail[before-1].Tokens
	}
	for ; after <= last && !closed[after-1]; after++ {
		less += tail[after].Tokens
	}
	switch {
	case after > last:
		return before
	case before <= 0 || less < more:
		return after
	}
	return before
}

// anchorIndex is the index of the anchor: whole user turns before the end, so
// that regenerating or editing in them leaves the summary on the branch, but
// never above the cutoff. Where the cutoff lies within a turn (an agent's run of
// tool calls), an edit of that turn's question loses the summary wherever it
// hangs. So the anchor then is as deep as the next turn, or as some messages
// before the end allow: that loses only what forks inside the run.
func anchorIndex(tail []tree.PathMessage, start, slack int, l LookAhead) int {
	cutoff := start - 1
	if l == LookAheadNone {
		return cutoff
	}
	turns, first := slack, -1
	for i := len(tail) - 1; i >= start; i-- {
		if tail[i].Role != tree.RoleUser {
			continue
		}
		first = i
		if turns--; turns == 0 {
			return i - 1
		}
	}
	if first >= 0 {
		return first - 1 // of a cutoff at a turn's end, the cutoff
	}
	const perTurn = 2 // messages that a turn has at least
	closed := closedAfter(tail)
	for i := len(tail) - 1 - perTurn*slack; i > cutoff; i-- {
		if closed[i] {
			return i
		}
	}
	return cutoff
}

// priorAnchor is the index of the applicable summary's anchor in the tail, -1
// where it is not there. A summary anchored above it would never apply below
// it: the deeper anchor does.
func priorAnchor(v tree.View) int {
	if v.Summary == nil {
		return -1
	}
	return slices.IndexFunc(v.Tail, func(m tree.PathMessage) bool { return m.ID == v.Summary.AnchorID })
}
