// Package db holds what talks SQL: the pool and the queries that sqlc
// generates from queries/ and schema.sql. Package migrate makes the schema. Package
// db knows rows, not rules: what a tree may look like is package tree's business.
//
// Two rules run through the queries. Every one asks for the tenant or runs in
// a transaction that has, so that another tenant's row reads as no row. And
// every term that reads nodes names conversation_id, the recursive term of a
// walk included, so that a plan stays in one conversation's part of the index
// and, on Citus, on one shard. What `offset 0` is for stands at
// GetTranscript in queries/branches.sql.
package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Handle is what a pool, a connection and a transaction have in common. On a
// transaction Begin makes a savepoint, so code written against Handle commits
// its own work on a pool and joins the caller's work on a transaction.
type Handle interface {
	DBTX
	Begin(ctx context.Context) (pgx.Tx, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}
