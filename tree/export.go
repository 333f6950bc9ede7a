package tree

import (
	"context"
	"iter"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Export reads a whole conversation in the order that Import needs: a parent
// before its children, and a summary after its anchor. Memory doesn't grow with
// the tree. The sequence holds a connection until it ends.
func (s *Store) Export(ctx context.Context, conversationID uuid.UUID) (_ Conversation, _ iter.Seq2[BundleNode, error], err error) {
	defer db.Wrap(&err, "tree.Export(%s)", conversationID)
	c, err := s.Conversation(ctx, conversationID)
	if err != nil {
		return Conversation{}, nil, err
	}
	return c, func(yield func(BundleNode, error) bool) {
		if err := s.export(ctx, conversationID, yield); err != nil {
			db.Wrap(&err, "tree.Export(%s)", conversationID)
			yield(BundleNode{}, err)
		}
	}, nil
}

func (s *Store) export(ctx context.Context, conversationID uuid.UUID, yield func(BundleNode, error) bool) error {
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).StreamNodes, toUUID(conversationID)) {
		if err != nil {
			return err
		}
		n := BundleNode{
			ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes), Body: row.Body, Reasoning: row.Reasoning.String, Metadata: row.Metadata,
			Pinned: row.Pinned, Annotation: fromAnnotation(row.Annotation), CreatedAt: row.CreatedAt.UTC(),
		}
		if row.Kind == string(KindSummary) {
			r := fromSummary(row.Node).Range
			n.Summary = &r
		} else {
			n.Graft = fromGraft(row.Origin)
		}
		if !yield(n, nil) {
			return nil
		}
	}
	return nil
}
