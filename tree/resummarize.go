package tree

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// FailedResummaries returns how often the program failed to make a summary
// again by itself, and the time of the last failure.
func (s *Store) FailedResummaries(ctx context.Context, conversationID, summaryID uuid.UUID) (times int, last time.Time, err error) {
	defer db.Wrap(&err, "tree.FailedResummaries(%s, %s)", conversationID, summaryID)
	row, err := s.q.GetFailedResummaries(ctx, db.GetFailedResummariesParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, SummaryID: toUUID(summaryID)})
	return int(row.Times), row.LastAt.UTC(), err
}

// CallsTools reports whether a message is answered by a call of a tool, on any
// branch. It doesn't check that the conversation is the tenant's.
func (s *Store) CallsTools(ctx context.Context, conversationID, messageID uuid.UUID) (_ bool, err error) {
	defer db.Wrap(&err, "tree.CallsTools(%s, %s)", conversationID, messageID)
	return s.q.CallsTools(ctx, db.CallsToolsParams{ConversationID: toUUID(conversationID), ID: toUUID(messageID)})
}

// DroppedPins returns the pinned messages that a summary folds and doesn't keep,
// oldest first. It walks the path above the cutoff.
func (s *Store) DroppedPins(ctx context.Context, conversationID uuid.UUID, of SummaryRange) (_ []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.DroppedPins(%s, cutoff %s)", conversationID, of.LastSummarizedID)
	ids, err := s.q.ListDroppedPins(ctx, db.ListDroppedPinsParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, CutoffID: toUUID(of.LastSummarizedID), KeptIds: toUUIDs(of.KeptIDs),
	})
	return fromUUIDs(ids), err
}

// Writers returns what wrote the summaries of a conversation, and which summary
// each of them merged, as the records of compactions tell: also of summaries that
// were undone since. Of each it returns the id, the prior summary and the model.
func (s *Store) Writers(ctx context.Context, conversationID uuid.UUID) (_ []Summary, err error) {
	defer db.Wrap(&err, "tree.Writers(%s)", conversationID)
	rows, err := s.q.ListWriters(ctx, db.ListWritersParams{ConversationID: toUUID(conversationID), TenantID: s.tenant})
	out := make([]Summary, len(rows))
	for i, row := range rows {
		out[i] = Summary{
			ConversationID: conversationID, ID: uuid.UUID(row.SummaryID.Bytes),
			Range: SummaryRange{PriorSummaryID: uuid.UUID(row.PriorSummaryID.Bytes), Model: row.Model},
		}
	}
	return out, err
}

// A TenantConversation names a conversation and whose it is.
type TenantConversation struct {
	TenantID       string
	ConversationID uuid.UUID
}

// Places returns conversations of all tenants in the order of their ids, those
// after an id: work in the background comes to each of them in time. It is for no
// request.
func (s *Store) Places(ctx context.Context, after uuid.UUID, limit int) (_ []TenantConversation, err error) {
	defer db.Wrap(&err, "tree.Places(after %s)", after)
	rows, err := s.q.ListOfAllTenants(ctx, db.ListOfAllTenantsParams{AfterID: pgtype.UUID{Bytes: after, Valid: true}, RowLimit: int32(limit)})
	out := make([]TenantConversation, len(rows))
	for i, row := range rows {
		out[i] = TenantConversation{row.TenantID, uuid.UUID(row.ID.Bytes)}
	}
	return out, err
}
