package server

import (
	"context"
	"net/http"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func (h handlers) CreateCompaction(ctx context.Context, r CreateCompactionRequestObject) (CreateCompactionResponseObject, error) {
	demand, err := newDemand(r.Body)
	if err != nil {
		return nil, err
	}
	id, head, err := parseBranch(r.ConversationID, r.HeadID)
	if err != nil {
		return nil, err
	}
	k, err := h.contexts(ctx).Compact(ctx, id, head, summarize.TriggerRequest, demand)
	if err != nil {
		return nil, err
	}
	a, err := answerWith(k)
	if k.Outcome == tree.OutcomeSaved {
		a.status, a.location = http.StatusCreated, conversationPath(id)+"/summaries/"+k.SummaryID.String()
	}
	return a, err
}

// newDemand reads what a compaction is asked for with. Nothing is fine: the
// service checks the rest.
func newDemand(body *NewCompaction) (*summarize.Demand, error) {
	if body == nil {
		return &summarize.Demand{}, nil
	}
	d := &summarize.Demand{
		KeepRecentMessages: deref(body.KeepRecentMessages), Instructions: deref(body.Instructions),
		LookAhead: summarize.LookAhead(deref(body.LookAhead)),
	}
	switch { // what the service takes for left out
	case body.KeepRecentMessages != nil && d.KeepRecentMessages == 0:
		return nil, problemf(CodeInvalidDemand, "keep_recent_messages", "It must be 1 or more: the last message is never folded.")
	case body.LookAhead != nil && d.LookAhead == "":
		return nil, problemf(CodeInvalidDemand, "look_ahead", "It must be %s or %s.", summarize.LookAheadRecent, summarize.LookAheadNone)
	}
	return d, nil
}

func (h handlers) ListCompactions(ctx context.Context, r ListCompactionsRequestObject) (ListCompactionsResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := h.store(ctx).Compactions(ctx, id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}
