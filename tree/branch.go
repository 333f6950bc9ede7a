package tree

import (
	"context"
	"iter"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Branch streams the last limit messages of the branch that ends in headID, the
// oldest first. A limit of 0 is the whole branch. A headID of uuid.Nil is the
// active head. The first error ends the sequence.
//
// It is one query, and the program's memory doesn't grow with the branch. The
// sequence holds a connection until it ends. Over a transaction, nothing else may
// run until then.
func (s *Store) Branch(ctx context.Context, conversationID, headID uuid.UUID, limit int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if err := s.streamBranch(ctx, conversationID, headID, limit, yield); err != nil {
			db.Wrap(&err, "tree.Branch(%s, head %s)", conversationID, headID)
			yield(Message{}, err)
		}
	}
}

func (s *Store) streamBranch(ctx context.Context, conversationID, headID uuid.UUID, limit int, yield func(Message, error) bool) error {
	found := false
	params := db.StreamBranchParams{ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant, Reader: s.reader, RowLimit: int32(limit)}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).StreamBranch, params) {
		if err != nil {
			return err
		}
		found = true
		if !yield(fromTranscript(conversationID, row), nil) {
			return nil
		}
	}
	if found {
		return nil
	}
	return s.noBranch(ctx, conversationID, headID, Paging{})
}
