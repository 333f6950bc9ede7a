package server

import (
	"context"
	"encoding/json"

	"github.com/coppice-chat/coppice/tree"
)

func (h handlers) CreateConversation(ctx context.Context, r CreateConversationRequestObject) (CreateConversationResponseObject, error) {
	n, err := h.newConversation(ctx, r.Body, r.Params.IdempotencyKey, "conversations")
	if err != nil {
		return nil, err
	}
	c, created, err := h.store(ctx).CreateConversation(ctx, n)
	if err != nil {
		return nil, conflictOfKey(err, r.Params.IdempotencyKey != nil && (r.Body == nil || r.Body.ID == nil))
	}
	return answerCreated(c, created, conversationPath(c.ID))
}

// newConversation reads what a request says of the conversation it makes.
// Saying nothing is fine.
func (h handlers) newConversation(ctx context.Context, body *NewConversation, key *string, scope string) (tree.NewConversation, error) {
	if body == nil {
		body = new(NewConversation)
	}
	if err := h.checkSettings(body.Settings); err != nil {
		return tree.NewConversation{}, err
	}
	id, err := h.newID(ctx, body.ID, key, scope)
	return tree.NewConversation{
		ID: id, Title: deref(body.Title), Metadata: json.RawMessage(body.Metadata), Settings: json.RawMessage(body.Settings),
	}, err
}

func (h handlers) ListConversations(ctx context.Context, r ListConversationsRequestObject) (ListConversationsResponseObject, error) {
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := h.store(ctx).Conversations(ctx, deref(r.Params.Query), p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func (h handlers) GetConversation(ctx context.Context, r GetConversationRequestObject) (GetConversationResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	c, err := h.store(ctx).Conversation(ctx, id)
	if err != nil {
		return nil, err
	}
	return answerWith(c)
}

func (h handlers) UpdateConversation(ctx context.Context, r UpdateConversationRequestObject) (UpdateConversationResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	head, err := parseOptionalID(r.Body.HeadID, "head_id")
	if err != nil {
		return nil, err
	}
	if err := h.checkSettings(r.Body.Settings); err != nil {
		return nil, err
	}
	c, err := h.store(ctx).UpdateConversation(ctx, id, tree.ConversationUpdate{
		Title: r.Body.Title, Metadata: json.RawMessage(r.Body.Metadata), Settings: json.RawMessage(r.Body.Settings), HeadID: head,
	})
	if err != nil {
		return nil, err
	}
	return answerWith(c)
}

func (h handlers) DeleteConversation(ctx context.Context, r DeleteConversationRequestObject) (DeleteConversationResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	if err := h.store(ctx).DeleteConversation(ctx, id); err != nil {
		return nil, err
	}
	return DeleteConversation204Response{}, nil
}
