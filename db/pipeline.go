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
	var n Node
	err := results.QueryRow().Scan(
		&n.ConversationID, &n.ID, &n.ParentID, &n.Kind, &n.Role, &n.SiblingIndex, &n.Depth, &n.Tokens, &n.PathTokens, &n.PrefixID,
		&n.Pinned, &n.CreatedAt, &n.Body, &n.SearchText, &n.Metadata, &n.LastSummarizedID, &n.PriorSummaryID, &n.KeptIds, &n.Model, &n.Origin, &n.SearchKey)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

func appendArgs(arg AppendMessageParams) []any {
	return []any{arg.ConversationID, arg.ParentID, arg.TenantID, arg.MostMessages, arg.ID, arg.Role, arg.Tokens,
		arg.Pinned, arg.CreatedAt, arg.Body, arg.SearchText, arg.Metadata, arg.SearchKey, arg.MoveHead, arg.ExpectedHead}
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

// StreamBranchRows is StreamBranch row by row.
func StreamBranchRows(ctx context.Context, h Handle, arg StreamBranchParams) (pgx.Rows, error) {
	return h.Query(ctx, streamBranch, arg.ConversationID, arg.HeadID, arg.TenantID, arg.RowLimit)
}
