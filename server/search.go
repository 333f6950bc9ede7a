package server

import "context"

func (h handlers) Search(ctx context.Context, r SearchRequestObject) (SearchResponseObject, error) {
	id, err := parseOptionalID(r.Params.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	hits, err := h.store(ctx).Search(ctx, r.Params.Query, id, p)
	if err != nil {
		return nil, err
	}
	return answerPage(hits)
}
