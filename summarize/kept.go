package summarize

import (
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// minCut is the least that is worth keeping of a message, in tokens, and
// keptFrame what the tags around one have.
const minCut, keptFrame = 64, 20

// chooseKept picks what stays verbatim of the folded messages: the pinned ones,
// and the newest of the user's within the budget, the last of which is cut where
// it doesn't fit.
func chooseKept(folded []tree.PathMessage, budget, pinned int) []Kept {
	longest := longestPin(folded, pinned)
	var kept []Kept
	for _, m := range slices.Backward(folded) {
		switch {
		case m.Pinned && m.Tokens <= longest:
			if pinned -= m.Tokens + keptFrame; pinned >= 0 {
				kept = append(kept, Kept{ID: m.ID})
			}
		case m.Pinned:
			if pinned -= longest + keptFrame; pinned >= 0 {
				kept = append(kept, Kept{ID: m.ID, Limit: longest})
			}
		case !m.Asks():
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

// withFirstPinned gives the messages that a summary stands for, of which text may
// stay: those kept so far and those to be folded. The first user message of the
// branch counts as pinned where the settings keep it.
func withFirstPinned(v tree.View, s Settings, fold []tree.PathMessage) []tree.PathMessage {
	all := slices.Concat(v.Kept, fold)
	if i := firstUser(v, all); i >= 0 && (s.KeepFirstUser == KeepFirstAlways || s.KeepFirstUser == KeepFirstAuto && v.Summary == nil && turnCalls(v.Tail, all[i].ID) && !otherTask(v.Tail, all[i].ID)) {
		all[i].Pinned = true
	}
	return all
}

// firstUser is the index of the branch's first user message among messages that
// are kept or to be folded; -1 where it is not there. Of a branch with a summary
// it is known by its place: at most one message stands between it and the prefix.
func firstUser(v tree.View, messages []tree.PathMessage) int {
	i := slices.IndexFunc(messages, tree.PathMessage.Asks)
	if i >= 0 && v.Summary != nil && (i >= len(v.Kept) || messages[i].Depth > len(v.Prefix)+1) {
		return -1
	}
	return i
}

// turnCalls tells whether tools are called in the turn that a user message begins.
func turnCalls(tail []tree.PathMessage, id uuid.UUID) bool {
	start := slices.IndexFunc(tail, func(m tree.PathMessage) bool { return m.ID == id })
	return start >= 0 && slices.ContainsFunc(tail[start:turnEnd(tail, start)], func(m tree.PathMessage) bool { return len(m.Calls) > 0 })
}

// leastTask is how many tokens a task has at least: a shorter message goes on with
// what was begun.
const leastTask = 20

// otherTask tells whether a user message after first gives another task: one of some
// length in whose turn tools are called.
func otherTask(tail []tree.PathMessage, first uuid.UUID) bool {
	return slices.ContainsFunc(tail, func(m tree.PathMessage) bool {
		return m.Asks() && m.ID != first && m.Tokens >= leastTask && turnCalls(tail, m.ID)
	})
}

// longestPin is how many tokens a pinned message may have for all of them to fit
// the budget: the short ones stay whole, and the long ones share what is left
// alike. It is never below minCut: where that is too much for all, the oldest
// don't stay.
func longestPin(folded []tree.PathMessage, budget int) int {
	var sizes []int
	for _, m := range folded {
		if m.Pinned {
			sizes = append(sizes, m.Tokens+keptFrame)
		}
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if share := budget / (len(sizes) - i); size > share {
			return max(share-keptFrame, minCut)
		}
		budget -= size
	}
	return math.MaxInt
}
