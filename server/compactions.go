package server

import (
	"github.com/coppice-chat/coppice/chat/reader"
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

func (b *newCompaction) read(o reader.Object) error { return bind(o, b.fields()) }

func createCompaction(r *Request) (Answer, error) {
	b := r.body.(*newCompaction)
	demand, err := summarize.NewDemand(b.keepRecentMessages, b.instructions, b.lookAhead)
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

// newRemake is the schema of this name.
type newRemake struct{ instructions, model *string }

func (b *newRemake) fields() []field {
	return []field{{"instructions", false, &b.instructions}, {"model", false, &b.model}}
}

func (b *newRemake) read(o reader.Object) error { return bind(o, b.fields()) }

func remakeSummary(r *Request) (Answer, error) {
	b := r.body.(*newRemake)
	var d summarize.RemakeDemand
	if b.instructions != nil {
		d.Instructions = *b.instructions
	}
	if b.model != nil {
		d.Model = *b.model
	}
	id, summaryID, err := r.ids("summary_id")
	if err != nil {
		return nil, err
	}
	k, err := r.Contexts().Remake(r.Context(), id, summaryID, d)
	if err != nil {
		return nil, err
	}
	return answerCreated(k, k.Outcome == tree.OutcomeSaved, conversationPath(id)+"/summaries/"+k.SummaryID.String())
}

func listCompactions(r *Request) (Answer, error) {
	id, p, err := r.list()
	if err != nil {
		return nil, err
	}
	list, err := r.Store().Summaries().Compactions(r.Context(), id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}
