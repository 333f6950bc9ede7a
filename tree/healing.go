package tree

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// VainHealing returns how often the program tried in vain to make a summary
// again by itself, and when it tried last.
func (s *Store) VainHealing(ctx context.Context, conversationID, summaryID uuid.UUID) (times int, last time.Time, err error) {
	defer db.Wrap(&err, "tree.VainHealing(%s, %s)", conversationID, summaryID)
	row, err := s.q.GetVainHealing(ctx, db.GetVainHealingParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, SummaryID: toUUID(summaryID)})
	return int(row.Times), row.LastAt.UTC(), err
}

// CallsTools reports whether a message is answered by a call of a tool, on any
// branch. It doesn't check that the conversation is the tenant's.
func (s *Store) CallsTools(ctx context.Context, conversationID, messageID uuid.UUID) (_ bool, err error) {
	defer db.Wrap(&err, "tree.CallsTools(%s, %s)", conversationID, messageID)
	return s.q.CallsTools(ctx, db.CallsToolsParams{ConversationID: toUUID(conversationID), ID: toUUID(messageID)})
}

// Unheld returns the pinned messages that a summary folds and doesn't keep,
// oldest first. It walks the path above the cutoff.
func (s *Store) Unheld(ctx context.Context, conversationID uuid.UUID, of SummaryRange) (_ []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Unheld(%s, cutoff %s)", conversationID, of.LastSummarizedID)
	ids, err := s.q.ListUnheld(ctx, db.ListUnheldParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, CutoffID: toUUID(of.LastSummarizedID), KeptIds: toUUIDs(of.KeptIDs),
	})
	return fromUUIDs(ids), err
}
