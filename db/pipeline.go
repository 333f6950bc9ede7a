package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// AppendInTurn sends LockConversation and AppendMessage in one pipeline: one
// round trip and, outside a transaction, one commit. The second statement's
// snapshot is taken when the first has the lock, so it sees what the
// conversation's writer before it committed.
//
// It returns pgx.ErrNoRows where either statement has no row: the caller then
// asks what is missing.
func AppendInTurn(ctx context.Context, h Handle, arg AppendMessageParams) (Node, error) {
	var b pgx.Batch
	b.Queue(lockConversation, arg.ConversationID, arg.TenantID)
	b.Queue(appendMessage, appendArgs(arg)...)
	results := h.SendBatch(ctx, &b)
	if _, err := results.Exec(); err != nil {
		results.Close()
		return Node{}, err
	}
	rows, _ := results.Query() // its error is the rows' as well
	node, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Node])
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return node, err
}

func appendArgs(arg AppendMessageParams) []any {
	return []any{arg.ConversationID, arg.ParentID, arg.TenantID, arg.MostMessages, arg.ID, arg.Role, arg.Tokens,
		arg.Pinned, arg.CreatedAt, arg.Body, arg.SearchText, arg.Metadata, arg.MoveHead}
}

// StreamTreeRows is StreamTree row by row, for trees that are not to be held
// in memory.
func StreamTreeRows(ctx context.Context, h Handle, arg StreamTreeParams) (pgx.Rows, error) {
	return h.Query(ctx, streamTree, arg.Preview, arg.ConversationID)
}

// StreamNodeRows is StreamNodes row by row.
func StreamNodeRows(ctx context.Context, h Handle, conversationID pgtype.UUID) (pgx.Rows, error) {
	return h.Query(ctx, streamNodes, conversationID)
}

// EachViewRow is GetView row by row: fn gets each row in a variable that the
// next one overwrites, though not what its fields point to. Contexts are what
// Coppice is asked for most, and holding all rows twice took a third of their
// memory.
func EachViewRow(ctx context.Context, h Handle, arg GetViewParams, fn func(*GetViewRow) error) error {
	rows, err := h.Query(ctx, getView, viewArgs(arg)...)
	if err != nil {
		return err
	}
	var r GetViewRow
	_, err = pgx.ForEachRow(rows, []any{
		&r.Part, &r.ID, &r.ParentID, &r.Role, &r.Depth, &r.Tokens, &r.PathTokens, &r.Pinned, &r.CreatedAt, &r.Body, &r.CallIds,
		&r.LastSummarizedID, &r.PriorSummaryID, &r.KeptIds, &r.Model, &r.Metadata, &r.Settings,
	}, func() error { return fn(&r) })
	return err
}

func viewArgs(arg GetViewParams) []any {
	return []any{arg.WithBodies, arg.ConversationID, arg.HeadID, arg.TenantID, arg.Budget, arg.Reach}
}
