package db

import (
	"bytes"
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
// next one overwrites, though not what its fields point to. Bodies lie one
// after the other in a few blocks of memory, each of which lasts as long as
// any of its bodies. Contexts are what Coppice is asked for most: to hold all
// rows twice took a third of their memory, and a piece of memory for each body
// a tenth of their time.
func EachViewRow(ctx context.Context, h Handle, arg GetViewParams, fn func(*GetViewRow) error) error {
	rows, err := h.Query(ctx, getView, viewArgs(arg)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r GetViewRow
	var bodies block
	fields := [...]any{
		&r.Part, &r.ID, &r.ParentID, &r.Role, &r.Depth, &r.Tokens, &r.PathTokens, &r.Pinned, &r.CreatedAt, bodyColumn: nil, &r.CallIds,
		&r.LastSummarizedID, &r.PriorSummaryID, &r.KeptIds, &r.Model, &r.Metadata, settingsColumn: nil,
	}
	scans := fields
	for rows.Next() {
		values := rows.RawValues()
		r = GetViewRow{Settings: r.Settings}
		for i := range fields {
			if scans[i] = fields[i]; values[i] == nil {
				scans[i] = nil
			}
		}
		if err := rows.Scan(scans[:]...); err != nil {
			return err
		}
		r.Body = bodies.keep(values[bodyColumn]) // json is the same text in both of Postgres' formats
		if r.Settings == nil {                   // the same in each row
			r.Settings = bytes.Clone(values[settingsColumn])
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// columns of GetView that are read in a way of their own.
const bodyColumn, settingsColumn = 9, 16

// A block is memory that values are copied into, one after the other.
type block []byte

// They bound how much memory is taken at a time, in bytes: little for a
// short branch, and what one body can keep alive of a long one.
const minBlock, maxBlock = 4 << 10, 32 << 10

// keep copies a value; nil stays nil.
func (b *block) keep(value []byte) []byte {
	if value == nil {
		return nil
	}
	if cap(*b)-len(*b) < len(value) {
		size := min(max(2*cap(*b), minBlock), maxBlock)
		*b = make([]byte, 0, max(size, len(value)))
	}
	start := len(*b)
	*b = append(*b, value...)
	return (*b)[start:len(*b):len(*b)]
}

func viewArgs(arg GetViewParams) []any {
	return []any{arg.WithBodies, arg.ConversationID, arg.HeadID, arg.TenantID, arg.Budget, arg.Reach}
}
