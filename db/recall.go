package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// WalkUpRows is WalkUp row by row: messages can be large, and a page of them is
// read one after the other.
func WalkUpRows(ctx context.Context, h Handle, arg WalkUpParams) (pgx.Rows, error) {
	return h.Query(ctx, walkUp, arg.ConversationID, arg.ID, arg.TenantID, arg.RowLimit)
}

// ListTextRows is ListTexts row by row.
func ListTextRows(ctx context.Context, h Handle, arg ListTextsParams) (pgx.Rows, error) {
	return h.Query(ctx, listTexts, arg.Ids, arg.ConversationID, arg.TenantID)
}
