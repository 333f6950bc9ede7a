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
	rows, err := s.q.ListMessages(ctx, db.ListMessagesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, Ids: toUUIDs(ids)})
	if err != nil {
		return nil, err
	}
	if len(rows) < len(ids) {
		return nil, errMessageNotFound
	}
	out := make([]Message, len(rows))
	for i, row := range rows {
		if row.Node.Kind != string(KindMessage) {
			return nil, errMessageNotFound
		}
		out[i] = fromMessage(row.Node, row.SiblingCount, row.Annotation)
	}
	return out, nil
}

// BranchFrom reads up to limit messages of the branch that ends in headID,
// oldest first, and tells whether more of the branch come after them: they end at
// about MaxPageBytes, also before the limit. It begins with the message fromID, or with the root where
// fromID is uuid.Nil. A headID of uuid.Nil is the active head. A fromID that is
// not on the branch is a fault.NotFound. The messages have no Siblings.
//
// The cost is that of the messages, and about 5 µs for each message of the
// branch below the first. A page of a Transcript goes from the head back, and
// costs its messages alone.
func (s *Histories) BranchFrom(ctx context.Context, conversationID, headID, fromID uuid.UUID, limit int) (_ []Message, more bool, err error) {
	defer db.Wrap(&err, "tree.Histories.BranchFrom(%s, head %s, from %s)", conversationID, headID, fromID)
	depth := 0
	if fromID != uuid.Nil {
		from, err := s.store().Message(ctx, conversationID, fromID)
		if err != nil {
			return nil, false, err
		}
		depth = from.Depth
	}
	rows, err := s.q.GetBranchPage(ctx, db.GetBranchPageParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, HeadID: toUUID(headID), FromDepth: int32(depth), RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	})
	switch {
	case err != nil:
		return nil, false, err
	case len(rows) == 0 && fromID == uuid.Nil:
		return nil, false, s.store().noBranch(ctx, conversationID, headID, Paging{})
	case len(rows) == 0 || fromID != uuid.Nil && uuid.UUID(rows[0].Node.ID.Bytes) != fromID:
		return nil, false, errMessageNotFound
	}
	out := make([]Message, len(rows))
	for i, row := range rows {
		out[i], more = fromMessage(row.Node, 0, nil), row.More
		out[i].Siblings = Siblings{}
	}
	return out, more, nil
}

// Sizes returns how many bytes messages have in a page, by their ids. Absent messages
// are left out.
func (s *Index) Sizes(ctx context.Context, conversationID uuid.UUID, ids []uuid.UUID) (_ map[uuid.UUID]int, err error) {
	defer db.Wrap(&err, "tree.Index.Sizes(%s, %d ids)", conversationID, len(ids))
	rows, err := s.q.ListSizes(ctx, db.ListSizesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, Ids: toUUIDs(ids)})
	sizes := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		sizes[uuid.UUID(row.ID.Bytes)] = int(row.Bytes)
	}
	return sizes, err
}

// Reasoning returns the reasoning of each of these messages, or "" for none. An
// id that is no message of the conversation is left out.
func (s *Store) Reasoning(ctx context.Context, conversationID uuid.UUID, ids []uuid.UUID) (_ map[uuid.UUID]string, err error) {
	defer db.Wrap(&err, "tree.Reasoning(%s, %d ids)", conversationID, len(ids))
	rows, err := s.q.ListReasoning(ctx, db.ListReasoningParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, Ids: toUUIDs(ids)})
	if err != nil {
		return nil, err
	}
	thought := make(map[uuid.UUID]string, len(rows))
	for _, row := range rows {
		thought[uuid.UUID(row.ID.Bytes)] = row.Reasoning
	}
	return thought, nil
}
