package tree

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// A Place names a message of a conversation.
type Place struct{ ConversationID, MessageID uuid.UUID }

func byConversation(places []Place) map[uuid.UUID][]pgtype.UUID {
	ids := map[uuid.UUID][]pgtype.UUID{}
	for _, p := range places {
		ids[p.ConversationID] = append(ids[p.ConversationID], toUUID(p.MessageID))
	}
	return ids
}

// ManyEmbeddings is how many vectors of a tenant are compared one by one. Of a
// tenant with more, pgvector's index is asked, or else the newest are compared.
const ManyEmbeddings = 10_000

// NewestEmbeddings calls fn with the tenant's newest vectors of a model, up to
// ManyEmbeddings. fn may keep the vectors.
func (s *Index) NewestEmbeddings(ctx context.Context, model string, fn func(Place, []byte)) (err error) {
	defer db.Wrap(&err, "tree.Index.NewestEmbeddings")
	params := db.ListTenantEmbeddingsParams{TenantKey: db.TenantKey(s.tenant), Model: model, RowLimit: ManyEmbeddings}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).ListTenantEmbeddings, params) {
		if err != nil {
			return err
		}
		fn(Place{uuid.UUID(row.ConversationID.Bytes), uuid.UUID(row.MessageID.Bytes)}, row.Vector)
	}
	return nil
}

// NearestEmbeddings returns the messages of the tenant whose vectors point most
// nearly as the given one does, nearest first, by the index that a
// background job makes with pgvector. ok is false where there is none.
func (s *Index) NearestEmbeddings(ctx context.Context, model string, vector []byte, limit int) (places []Place, ok bool, err error) {
	defer db.Wrap(&err, "tree.Index.NearestEmbeddings")
	ids, ok, err := db.VectorIndex{TenantKey: db.TenantKey(s.tenant), Model: model, Dimensions: len(vector)}.Nearest(ctx, s.h, vector, limit)
	for _, id := range ids {
		places = append(places, Place{uuid.UUID(id.ConversationID.Bytes), uuid.UUID(id.MessageID.Bytes)})
	}
	return places, ok, err
}

// Own returns those of the conversations that are the tenant's and have a
// message, in the order of ids.
func (s *Index) Own(ctx context.Context, ids []uuid.UUID) (own []Candidate, err error) {
	defer db.Wrap(&err, "tree.Index.Own(%d)", len(ids))
	rows, err := s.q.ListTenantsOwn(ctx, db.ListTenantsOwnParams{Ids: toUUIDs(ids), TenantID: s.tenant, Reader: s.reader})
	for _, row := range rows {
		own = append(own, Candidate{uuid.UUID(row.ID.Bytes), int(row.MessageCount)})
	}
	slices.SortFunc(own, func(a, b Candidate) int {
		return cmp.Compare(slices.Index(ids, a.ConversationID), slices.Index(ids, b.ConversationID))
	})
	return own, err
}

// A Candidate is a conversation that may answer a question.
type Candidate struct {
	ConversationID uuid.UUID
	Messages       int // in the conversation
}
