// Package db holds the pool, and the queries that sqlc generates from queries/
// and schema.sql. Package migrate makes the schema. Package db knows rows and no
// rules: package tree decides what a tree may look like.
//
// Two rules run through the queries. Every query names the tenant, or runs in a
// transaction in which a query has named it, so that another tenant's row reads
// as no row. Every term that reads nodes names conversation_id, the recursive
// term of a walk included, so that a plan stays in one conversation's part of the
// index and, on Citus, on one shard. The comment on GetTranscript in
// queries/branches.sql explains `offset 0`.
package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Handle is what a pool, a connection and a transaction have in common. On a
// transaction, Begin makes a savepoint. So code that is written against Handle
// commits its own work on a pool, and joins the caller's work on a transaction.
type Handle interface {
	DBTX
	Begin(ctx context.Context) (pgx.Tx, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}
