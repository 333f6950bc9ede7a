package dbtest

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db"
)

// Trips is a handle that counts the round trips to the database.
type Trips struct {
	db.Handle
	n atomic.Int64
}

// Count returns the round trips since the last call of Count.
func (t *Trips) Count() int { return int(t.n.Swap(0)) }

func (t *Trips) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	t.n.Add(1)
	return t.Handle.Exec(ctx, sql, args...)
}

func (t *Trips) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	t.n.Add(1)
	return t.Handle.Query(ctx, sql, args...)
}

func (t *Trips) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	t.n.Add(1)
	return t.Handle.QueryRow(ctx, sql, args...)
}

func (t *Trips) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	t.n.Add(1)
	return t.Handle.CopyFrom(ctx, table, columns, rows)
}

func (t *Trips) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	t.n.Add(1)
	return t.Handle.SendBatch(ctx, b)
}

// Begin counts the begin and the commit. It doesn't count what runs in the
// transaction.
func (t *Trips) Begin(ctx context.Context) (pgx.Tx, error) {
	t.n.Add(2)
	return t.Handle.Begin(ctx)
}
