package tree

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// Retitle gives a conversation a title if its title still is the one that is to be
// replaced, so that nothing overwrites a title that a person gave meanwhile. It
// reports whether it did.
func (s *Store) Retitle(ctx context.Context, id uuid.UUID, replaced, title string) (done bool, err error) {
	defer db.Wrap(&err, "tree.Retitle(%s)", id)
	if err := checkTitle(title); err != nil {
		return false, err
	}
	err = s.inTurn(ctx, id, func(s *Store) error {
		was, err := s.lock(ctx, id)
		if done = err == nil && was.Title == replaced && title != replaced; !done {
			return err
		}
		_, err = s.q.UpdateConversation(ctx, db.UpdateConversationParams{
			ID: toUUID(id), TenantID: s.tenant, Reader: s.reader, Title: pgtype.Text{String: title, Valid: true},
		})
		if err != nil {
			return err
		}
		return s.note(ctx, Change{ConversationID: id, Kind: ConversationUpdated})
	})
	return done && err == nil, err
}
