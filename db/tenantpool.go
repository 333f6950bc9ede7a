package db

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A TenantPool is a pool of which each tenant has at most half of the connections at
// a time, rounded up. The tenant's other statements and transactions wait in memory
// until it gives one back, in their order. The TenantPool itself is a handle of the
// whole pool, for what is no tenant's.
type TenantPool struct {
	*pgxpool.Pool
	semaphore *KeyedSemaphore[string]
}

// NewTenantPool returns a TenantPool of a pool's connections.
func NewTenantPool(pool *pgxpool.Pool) *TenantPool {
	return &TenantPool{pool, NewKeyedSemaphore[string](int(pool.Config().MaxConns+1) / 2)}
}

// Of returns the handle of a tenant. A goroutine that reads rows or has a transaction
// must not ask the handle for a second connection, for which it may wait in vain.
func (p *TenantPool) Of(tenantID string) Handle { return &share{p, tenantID} }

// Waiting returns how many statements and transactions wait for the tenant's part.
func (p *TenantPool) Waiting(tenantID string) int { return p.semaphore.Waiting(tenantID) }

// A share is a tenant's part of a pool.
type share struct {
	of     *TenantPool
	tenant string
}

// take gives a connection, and how it is given back, which works once.
func (s *share) take(ctx context.Context) (*pgxpool.Conn, func(), error) {
	leave, err := s.of.semaphore.Acquire(ctx, s.tenant)
	if err != nil {
		return nil, nil, err
	}
	conn, err := s.of.Pool.Acquire(ctx)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return conn, sync.OnceFunc(func() { conn.Release(); leave() }), nil
}

// connOf gives a connection of a pool's or a tenant's, for several statements that
// need the same one; nil of any other handle, which is one already.
func connOf(ctx context.Context, h DBTX) (conn *pgxpool.Conn, leave func(), err error) {
	switch h := h.(type) {
	case *share:
		return h.take(ctx)
	case interface {
		Acquire(context.Context) (*pgxpool.Conn, error)
	}:
		if conn, err = h.Acquire(ctx); err == nil {
			leave = conn.Release
		}
	}
	return conn, leave, err
}

// Exec runs a statement.
func (s *share) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	conn, leave, err := s.take(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer leave()
	return conn.Exec(ctx, sql, args...)
}

// CopyFrom copies rows into a table.
func (s *share) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	conn, leave, err := s.take(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	return conn.CopyFrom(ctx, table, columns, rows)
}

// Query has the connection until the rows are closed.
func (s *share) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, leave, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		leave()
		return nil, err
	}
	return sharedRows{rows, leave}, nil
}

// QueryRow has the connection until the row is scanned.
func (s *share) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	conn, leave, err := s.take(ctx)
	if err != nil {
		return failedRow{err}
	}
	return sharedRow{conn.QueryRow(ctx, sql, args...), leave}
}

// SendBatch has the connection until the results are closed.
func (s *share) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	conn, leave, err := s.take(ctx)
	if err != nil {
		return failedResults{err}
	}
	return sharedResults{conn.SendBatch(ctx, b), leave}
}

// Begin has the connection until the transaction ends.
func (s *share) Begin(ctx context.Context) (pgx.Tx, error) {
	conn, leave, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	return sharedTx{tx, leave}, nil
}

type sharedRows struct {
	pgx.Rows
	leave func()
}

// Next closes the rows after the last one.
func (r sharedRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.leave()
	}
	return more
}

// Close gives the connection back.
func (r sharedRows) Close() {
	r.Rows.Close()
	r.leave()
}

type sharedRow struct {
	pgx.Row
	leave func()
}

// Scan gives the connection back.
func (r sharedRow) Scan(to ...any) error {
	defer r.leave()
	return r.Row.Scan(to...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

type sharedResults struct {
	pgx.BatchResults
	leave func()
}

// Close gives the connection back.
func (r sharedResults) Close() error {
	defer r.leave()
	return r.BatchResults.Close()
}

// failedResults are of a batch that was not sent.
type failedResults struct{ err error }

func (r failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, r.err }
func (r failedResults) Query() (pgx.Rows, error)         { return failedRows{err: r.err}, r.err }
func (r failedResults) QueryRow() pgx.Row                { return failedRow(r) }
func (r failedResults) Close() error                     { return r.err }
func (r failedResults) Tx() pgx.Tx                       { return nil }

// failedRows are none, as pgx gives them beside an error.
type failedRows struct {
	pgx.Rows // nil: all that may be called of rows that failed is below
	err      error
}

func (r failedRows) Close()                        {}
func (r failedRows) Err() error                    { return r.err }
func (r failedRows) Next() bool                    { return false }
func (r failedRows) Scan(...any) error             { return r.err }
func (r failedRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }

type sharedTx struct {
	pgx.Tx
	leave func()
}

// Commit gives the connection back.
func (t sharedTx) Commit(ctx context.Context) error {
	defer t.leave()
	return t.Tx.Commit(ctx)
}

// Rollback gives the connection back.
func (t sharedTx) Rollback(ctx context.Context) error {
	defer t.leave()
	return t.Tx.Rollback(ctx)
}
