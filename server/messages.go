package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

func (h handlers) AppendMessages(ctx context.Context, r AppendMessagesRequestObject) (AppendMessagesResponseObject, error) {
	conversationID, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	derived, err := h.nameMessages(ctx, r.Body.messages, r.Params.IdempotencyKey, conversationID)
	if err != nil {
		return nil, err
	}
	var options []tree.AppendOption
	if r.Body.keepHead {
		options = append(options, tree.KeepHead())
	}
	store := h.store(ctx)
	if !r.Body.chain {
		m, created, err := store.Append(ctx, conversationID, r.Body.parentID, r.Body.messages[0], options...)
		h.metrics.countAppend(1, created, err)
		if err != nil {
			return nil, conflictOfKey(err, derived["id"])
		}
		return answerCreated(m, created, messagePath(m))
	}
	chain, created, err := store.AppendChain(ctx, conversationID, r.Body.parentID, r.Body.messages, options...)
	h.metrics.countAppend(len(chain), created, err)
	if err != nil {
		return nil, conflictOfKey(err, derived[deref(toProblem(err).Field)])
	}
	a, err := answerPage(tree.Page[tree.Message]{Data: chain})
	if created {
		a.status, a.location = http.StatusCreated, messagePath(chain[len(chain)-1])
	}
	return a, err
}

func messagePath(m tree.Message) string {
	return conversationPath(m.ConversationID) + "/messages/" + m.ID.String()
}

// nameMessages gives messages without an id of their own the ids that derive
// from the Idempotency-Key, and tells by their fields which they are.
func (h handlers) nameMessages(ctx context.Context, messages []tree.NewMessage, key *string, conversationID uuid.UUID) (derived map[string]bool, err error) {
	if err := checkIdempotencyKey(key); err != nil || key == nil {
		return nil, err
	}
	derived = make(map[string]bool)
	scope := conversationID.String() + "/messages"
	for i := range messages {
		if messages[i].ID != uuid.Nil {
			continue
		}
		if messages[i].ID, err = h.deriveID(ctx, *key, scope, i); err != nil {
			return nil, err
		}
		derived[fmt.Sprintf("messages[%d].id", i)] = true
		derived["id"] = true // of the only one, where it is no chain
	}
	return derived, nil
}

func (h handlers) GetMessage(ctx context.Context, r GetMessageRequestObject) (GetMessageResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	m, err := h.store(ctx).Message(ctx, conversationID, messageID)
	if err != nil {
		return nil, err
	}
	return answerWith(m)
}

func (h handlers) PruneMessage(ctx context.Context, r PruneMessageRequestObject) (PruneMessageResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	pruned, err := h.store(ctx).Prune(ctx, conversationID, messageID)
	if err != nil {
		return nil, err
	}
	return answerWith(pruned)
}

func (h handlers) ListChildren(ctx context.Context, r ListChildrenRequestObject) (ListChildrenResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := h.store(ctx).Children(ctx, conversationID, messageID, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func (h handlers) ListRoots(ctx context.Context, r ListRootsRequestObject) (ListRootsResponseObject, error) {
	id, err := parseID(r.ConversationID, "conversation_id")
	if err != nil {
		return nil, err
	}
	p, err := parsePaging(r.Params.Limit, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := h.store(ctx).Children(ctx, id, uuid.Nil, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func (h handlers) GetNewestLeaf(ctx context.Context, r GetNewestLeafRequestObject) (GetNewestLeafResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	m, err := h.store(ctx).NewestLeaf(ctx, conversationID, messageID)
	if err != nil {
		return nil, err
	}
	return answerWith(m)
}

func (h handlers) ForkMessage(ctx context.Context, r ForkMessageRequestObject) (ForkMessageResponseObject, error) {
	conversationID, messageID, err := parsePath(r.ConversationID, r.MessageID)
	if err != nil {
		return nil, err
	}
	n, err := h.newConversation(ctx, r.Body, r.Params.IdempotencyKey, fmt.Sprintf("%s/messages/%s/fork", conversationID, messageID))
	if err != nil {
		return nil, err
	}
	c, created, err := h.store(ctx).Fork(ctx, conversationID, messageID, n)
	if err != nil {
		return nil, conflictOfKey(err, r.Params.IdempotencyKey != nil && (r.Body == nil || r.Body.ID == nil))
	}
	return answerCreated(c, created, conversationPath(c.ID))
}
