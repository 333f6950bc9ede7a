package summarize

import (
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// A Plan says what a compaction folds, what its summarizer sees, and where the
// summary goes.
type Plan struct {
	CutoffID  uuid.UUID          // last message to be folded
	AnchorID  uuid.UUID          // deepest message that the summarizer sees; the summary hangs there
	PriorID   uuid.UUID          // summary to be merged, uuid.Nil for none
	Fold      []tree.PathMessage // newly folded, oldest first
	LookAhead []tree.PathMessage // after the cutoff up to the anchor
	Tail      int                // messages after the cutoff
	Kept      []Kept             // folded messages that stay verbatim, oldest first

	MessagesBefore int // that the context holds now, the summary counted as one
	TokensBefore   int
	FoldTokens     int // of Fold
	Replaced       int // tokens that the new summary's message takes the place of: Fold, and the prior summary's message
	Target         int // tokens asked for
}

// Kept is a folded message that stays verbatim.
type Kept struct {
	ID    uuid.UUID
	Limit int // tokens that stay of it, the middle being cut; 0: all
}

// Demand is what somebody who asks for a compaction wants otherwise than the
// settings say.
type Demand struct {
	KeepRecentMessages int    // messages that the tail keeps, instead of keep_ratio; 0: by the settings
	Instructions       string // for the summarizer
	LookAhead          LookAhead
}

// A Reason says why there is nothing to do.
type Reason string

const (
	ReasonOff          Reason = "Compaction is off for this conversation."
	ReasonManual       Reason = "Compaction is manual for this conversation, and nobody asked for it."
	ReasonBelowTrigger Reason = "The context is below its trigger."
	ReasonTailKept     Reason = "All that isn't folded yet is recent, and stays verbatim."
	ReasonTooFew       Reason = "The messages that could be folded are too few to be worth a summary."
	ReasonTooSmall     Reason = "The messages that could be folded have too few tokens to be worth a summary."
	ReasonNoCut        Reason = "There is no point to cut at where no tool call is open."
)

// MakePlan decides whether and how the branch is compacted: a pure function.
// A nil demand asks by the settings alone, so below the trigger there is no
// plan; a demand folds whatever may be folded. The Reason is "" with a plan.
//
// It takes time in proportion to the view's messages.
func MakePlan(v tree.View, s Settings, d *Demand) (*Plan, Reason) {
	b := s.Budget()
	switch {
	case s.Compaction == ModeOff:
		return nil, ReasonOff
	case d == nil && s.Compaction == ModeManual:
		return nil, ReasonManual
	case d == nil && !due(v, s, b):
		return nil, ReasonBelowTrigger
	}
	start, reason := tailStart(v.Tail, s, b, d)
	if reason != "" {
		return nil, reason
	}
	fold := v.Tail[:start]
	tokens := tree.Tokens(fold)
	// A request folds little if that is what there is.
	if d == nil && len(fold) < s.MinFoldMessages {
		return nil, ReasonTooFew
	}
	if d == nil && tokens < s.MinFoldTokens {
		return nil, ReasonTooSmall
	}
	lookAhead := s.LookAhead
	if d != nil && d.LookAhead != "" {
		lookAhead = d.LookAhead
	}
	anchor := max(anchorIndex(v.Tail, start, s.AnchorSlackTurns, lookAhead), priorAnchor(v))
	p := &Plan{
		CutoffID: v.Tail[start-1].ID, AnchorID: v.Tail[anchor].ID,
		Fold: fold, LookAhead: v.Tail[start : anchor+1], Tail: len(v.Tail) - start,
		MessagesBefore: len(v.Prefix) + len(v.Tail), TokensBefore: contextTokens(v),
		FoldTokens: tokens, Replaced: tokens, Target: b.Target,
	}
	if v.Summary != nil {
		p.PriorID = v.Summary.ID
		p.Replaced += v.Summary.Tokens
		p.MessagesBefore++
	}
	p.Kept = chooseKept(slices.Concat(v.Kept, fold), b.KeepUser)
	return p, ""
}

// contextTokens is what the whole branch costs as its context shows it.
func contextTokens(v tree.View) int {
	n := tree.Tokens(v.Prefix) + tree.Tokens(v.Tail)
	if v.Summary != nil {
		n += v.Summary.Tokens
	}
	return n
}

// due tells whether the settings ask for a compaction. Only what the context
// holds counts: what is folded already doesn't.
func due(v tree.View, s Settings, b Budget) bool {
	return contextTokens(v) > b.Trigger || s.EveryNMessages > 0 && len(v.Tail) >= s.EveryNMessages
}

// tailStart gives the index of the first message that stays verbatim; the one
// before it is the cutoff.
func tailStart(tail []tree.PathMessage, s Settings, b Budget, d *Demand) (int, Reason) {
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
	if at := nearestClosed(closed, raw, len(tail)-recent); at > 0 {
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
			open = m.Calls // calls left unanswered stay so once somebody else speaks
		}
		closed[i] = open <= 0
	}
	return closed
}

// nearestClosed is the tail start nearest to raw, and not after last, that has
// no open call before it, the earlier of two at one distance; 0 where there is
// none.
func nearestClosed(closed []bool, raw, last int) int {
	for distance := 0; distance < len(closed); distance++ {
		if at := raw - distance; at > 0 && closed[at-1] {
			return at
		}
		if at := raw + distance; at <= last && closed[at-1] {
			return at
		}
	}
	return 0
}

// anchorIndex is the index of the anchor: whole user turns before the end, so
// that regenerating or editing in them leaves the summary on the branch, but
// never above the cutoff.
func anchorIndex(tail []tree.PathMessage, start, slack int, l LookAhead) int {
	cutoff := start - 1
	if l == LookAheadNone {
		return cutoff
	}
	for i := len(tail) - 1; i >= start; i-- {
		if tail[i].Role != tree.RoleUser {
			continue
		}
		if slack--; slack == 0 {
			return i - 1
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

// minCut is the least that is worth keeping of a message, in tokens.
const minCut = 64

// chooseKept picks what stays verbatim of the folded messages: all that are
// pinned, and the newest of the user's within the budget, the last of which is
// cut where it doesn't fit.
func chooseKept(folded []tree.PathMessage, budget int) []Kept {
	var kept []Kept
	for _, m := range slices.Backward(folded) {
		switch {
		case m.Pinned:
			kept = append(kept, Kept{ID: m.ID})
		case m.Role != tree.RoleUser:
		case m.Tokens <= budget:
			kept = append(kept, Kept{ID: m.ID})
			budget -= m.Tokens
		default:
			if budget >= minCut {
				kept = append(kept, Kept{ID: m.ID, Limit: budget})
			}
			budget = 0 // older ones would leave a gap
		}
	}
	slices.Reverse(kept)
	return kept
}
