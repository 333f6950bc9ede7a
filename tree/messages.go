package tree

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Messages reads messages by their ids, in the order of the ids. An id may occur
// twice. An absent message is a fault.NotFound.
func (s *Store) Messages(ctx context.Context, conversationID uuid.UUID, ids []uuid.UUID) (_ []Message, err error) {
	defer db.Wrap(&err, "tree.Messages(%s, %d ids)", conversationID, len(ids))
	rows, err := s.q.ListMessages(ctx, db.ListMessagesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Ids: toUUIDs(ids)})
	if err != nil {
		return nil, err
	}
	if len(rows) < len(ids) {
		return nil, errMessageNotFound
	}
	out := make([]Message, len(rows))
	for i, row := range rows {
		out[i] = fromMessage(row.Node, row.SiblingCount)
	}
	return out, nil
}
