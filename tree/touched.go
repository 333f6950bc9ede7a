package tree

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

const (
	touchedPage  = 500
	newestLeaves = 20 // of a conversation that are looked at
)

// Touched calls fn with branches of all tenants that ended in a new message since
// a time: the newest 20 of each conversation at most. It gives fn a Store of the
// conversation's tenant. An error of fn ends it, and so does ctx. It reads all
// conversations, without what was said in them.
func (s *Store) Touched(ctx context.Context, since time.Time, fn func(*Store, Message) error) (err error) {
	defer db.Wrap(&err, "tree.Touched(%v)", since)
	for after := uuid.Nil; ; {
		rows, err := s.q.ListTouched(ctx, db.ListTouchedParams{Since: since, AfterID: pgtype.UUID{Bytes: after, Valid: true}, RowLimit: touchedPage})
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = uuid.UUID(row.ID.Bytes)
			tenant := s.ForTenant(row.TenantID)
			if err := tenant.touchedLeaves(ctx, after, since, fn); err != nil {
				return err
			}
		}
		if len(rows) < touchedPage {
			return nil
		}
	}
}

func (s *Store) touchedLeaves(ctx context.Context, conversationID uuid.UUID, since time.Time, fn func(*Store, Message) error) error {
	p := Paging{Limit: newestLeaves}
	for {
		leaves, err := s.Branches(ctx, conversationID, p)
		if err != nil {
			return ignoreNotFound(err) // deleted meanwhile
		}
		for _, leaf := range leaves.Data { // the newest first
			if leaf.CreatedAt.Before(since) {
				return nil
			}
			if err := fn(s, leaf); err != nil {
				return err
			}
		}
		p.Limit, p.Cursor = p.Limit-len(leaves.Data), leaves.Next
		if p.Limit == 0 || p.Cursor == "" {
			return nil
		}
	}
}
