package server

import (
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// newCompaction is the schema of this name.
type newCompaction struct {
	keepRecentMessages      *int
	instructions, lookAhead *string
}

func (b *newCompaction) fields() []field {
	return []field{{"instructions", false, &b.instructions}, {"keep_recent_messages", false, &b.keepRecentMessages}, {"look_ahead", false, &b.lookAhead}}
}

func (b *newCompaction) read(o object) error { return o.bind("", b.fields()) }

func createCompaction(r *Request) (Answer, error) {
	demand, err := r.body.(*newCompaction).demand()
	if err != nil {
		return nil, err
	}
	id, head, err := r.branch()
	if err != nil {
		return nil, err
	}
	k, err := r.Contexts().Compact(r.Context(), id, head, summarize.TriggerRequest, demand)
	if err != nil {
		return nil, err
	}
	return answerCreated(k, k.Outcome == tree.OutcomeSaved, conversationPath(id)+"/summaries/"+k.SummaryID.String())
}

// demand is what the compaction is asked for with. Nothing is fine: the service
// checks the rest.
func (b *newCompaction) demand() (*summarize.Demand, error) {
	d := &summarize.Demand{
		KeepRecentMessages: deref(b.keepRecentMessages), Instructions: deref(b.instructions),
		LookAhead: summarize.LookAhead(deref(b.lookAhead)),
	}
	switch { // what the service takes for left out
	case b.keepRecentMessages != nil && d.KeepRecentMessages == 0:
		return nil, problemf(CodeInvalidDemand, "keep_recent_messages", "It must be 1 or more: the last message is never folded.")
	case b.lookAhead != nil && d.LookAhead == "":
		return nil, problemf(CodeInvalidDemand, "look_ahead", "It must be %s or %s.", summarize.LookAheadRecent, summarize.LookAheadNone)
	}
	return d, nil
}

func listCompactions(r *Request) (Answer, error) {
	id, p, err := r.list()
	if err != nil {
		return nil, err
	}
	list, err := r.Store().Compactions(r.Context(), id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}
