package tree

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// An Embedding is a message's vector, a byte for each dimension.
type Embedding struct {
	MessageID uuid.UUID
	Version   Version // of the message whose text was embedded
	Vector    []byte  // empty where the message says nothing that can be embedded
}

// Unembedded returns up to limit messages of a conversation that have no row of
// the model among the vectors, the newest ids first. With a place it reads those
// alone that were appended after that change; the feed has to reach back to it (see
// Growth.Forgot). With 0 it reads the conversation's messages. Of an absent
// conversation there are none.
func (s *Index) Unembedded(ctx context.Context, conversationID uuid.UUID, model string, place int64, limit int) (texts []MessageText, err error) {
	defer db.Wrap(&err, "tree.Index.Unembedded(%s, after %d)", conversationID, place)
	var rows []db.ListUnembeddedRow
	if place > 0 {
		rows, err = s.q.ListNewUnembedded(ctx, db.ListNewUnembeddedParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader, Place: place, Model: model, RowLimit: int32(limit)})
	} else {
		rows, err = s.q.ListUnembedded(ctx, db.ListUnembeddedParams{ConversationID: toUUID(conversationID), Model: model, TenantID: s.tenant, Reader: s.reader, RowLimit: int32(limit)})
	}
	for _, row := range rows {
		texts = append(texts, fromText(row))
	}
	return texts, err
}

// SaveEmbeddings stores vectors of a model, in place of the messages' vectors of
// another model, and returns how many it stored. A message that was pruned since,
// or has another Version, gets none.
func (s *Index) SaveEmbeddings(ctx context.Context, conversationID uuid.UUID, model string, all []Embedding) (saved int, err error) {
	defer db.Wrap(&err, "tree.Index.SaveEmbeddings(%s, %d)", conversationID, len(all))
	p := db.SaveEmbeddingsParams{ConversationID: toUUID(conversationID), Model: model, TenantKey: db.TenantKey(s.tenant)}
	for _, e := range all {
		p.Ids, p.Versions, p.Vectors = append(p.Ids, toUUID(e.MessageID)), append(p.Versions, int64(e.Version)), append(p.Vectors, e.Vector)
	}
	err = s.store().inTurn(ctx, conversationID, func(s *Store) error {
		if _, err := s.lock(ctx, conversationID); err != nil {
			return err
		}
		p.Now = now().UnixMicro()
		n, err := s.q.SaveEmbeddings(ctx, p)
		saved = int(n)
		return err
	})
	return saved, err
}

// Embeddings calls fn with a conversation's vectors of a model that were stored
// after a stamp, oldest first, each with its stamp. 0 is before all stamps. Of an
// absent conversation there are none.
func (s *Index) Embeddings(ctx context.Context, conversationID uuid.UUID, model string, after int64, fn func(Embedding, int64)) (err error) {
	defer db.Wrap(&err, "tree.Index.Embeddings(%s)", conversationID)
	params := db.ListEmbeddingsParams{ConversationID: toUUID(conversationID), Model: model, AfterStamp: after, TenantID: s.tenant, Reader: s.reader}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).ListEmbeddings, params) {
		if err != nil {
			return err
		}
		fn(Embedding{uuid.UUID(row.MessageID.Bytes), Version(row.Version), row.Vector}, row.Stamp)
	}
	return nil
}

// copyEmbeddings gives a fork's copies the vectors of the copied messages.
func (s *Store) copyEmbeddings(ctx context.Context, from, to uuid.UUID, ids []pgtype.UUID, copied func(uuid.UUID) uuid.UUID) error {
	copies := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		copies[i] = toUUID(copied(uuid.UUID(id.Bytes)))
	}
	return s.q.CopyEmbeddings(ctx, db.CopyEmbeddingsParams{ToID: toUUID(to), Copies: copies, Stamp: now().UnixMicro(), Ids: ids, ConversationID: toUUID(from)})
}
