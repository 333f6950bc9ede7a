package bench

import (
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A rule says where a summary hangs, and how far its summarizer sees. A summary
// applies to every branch that holds the message where it hangs: of several the
// one that hangs deepest, and of several there the newest.
//
// What is folded and when is the planner's for every rule, so that nothing but
// the rule differs.
type rule struct {
	name      string
	lookAhead summarize.LookAhead

	// place gives both as indexes into v.Tail, never above the cutoff.
	place func(v tree.View, p *summarize.Plan) (hangs, sees int)
}

// Names of the rules, as reports give them.
const (
	RuleTip            = "parent at the tip"               // sees the whole branch
	RuleLastUser       = "parent at the last user message" // sees the whole branch, as Onyx does it
	RuleLastUserStrict = "the same, seeing no further"     // than that message, so it can't leak
	RuleOurs           = "ours"
	RuleOursNone       = "ours, look_ahead none"
	RuleCutoff         = "matched by the cutoff" // sees the whole branch
)

var rules = []rule{
	{RuleTip, summarize.LookAheadRecent, func(v tree.View, _ *summarize.Plan) (int, int) { return tip(v), tip(v) }},
	{RuleLastUser, summarize.LookAheadRecent, func(v tree.View, p *summarize.Plan) (int, int) { return lastUser(v, p), tip(v) }},
	{RuleLastUserStrict, summarize.LookAheadRecent, func(v tree.View, p *summarize.Plan) (int, int) { return lastUser(v, p), lastUser(v, p) }},
	{RuleOurs, summarize.LookAheadRecent, planned},
	{RuleOursNone, summarize.LookAheadNone, planned},
	{RuleCutoff, summarize.LookAheadRecent, func(v tree.View, p *summarize.Plan) (int, int) { return at(v, p.CutoffID), tip(v) }},
}

// planned is the real planner's choice.
func planned(v tree.View, p *summarize.Plan) (hangs, sees int) {
	anchor := at(v, p.AnchorID)
	return anchor, anchor
}

func tip(v tree.View) int { return len(v.Tail) - 1 }

func lastUser(v tree.View, p *summarize.Plan) int {
	cutoff := at(v, p.CutoffID)
	for i := tip(v); i > cutoff; i-- {
		if v.Tail[i].Role == tree.RoleUser {
			return i
		}
	}
	return cutoff
}

func at(v tree.View, id uuid.UUID) int {
	return slices.IndexFunc(v.Tail, func(m tree.PathMessage) bool { return m.ID == id })
}
