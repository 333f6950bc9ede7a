package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type txKey struct{}

// WithTx gives a context that carries a transaction, for code that is called
// through an interface which knows nothing of the database.
func WithTx(ctx context.Context, tx pgx.Tx) context.Context {
	return context.WithValue(ctx, txKey{}, tx)
}

// TxOf gives the transaction that a context carries, nil for none.
func TxOf(ctx context.Context) pgx.Tx {
	tx, _ := ctx.Value(txKey{}).(pgx.Tx)
	return tx
}
