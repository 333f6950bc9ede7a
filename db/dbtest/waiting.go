package dbtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Waiting returns how many statements wait for another one's lock in the database
// of a pool, connection or transaction.
func Waiting(t testing.TB, on interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (n int) {
	t.Helper()
	const waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
	if err := on.QueryRow(t.Context(), waiting).Scan(&n); err != nil {
		t.Fatalf("dbtest.Waiting: %v", err)
	}
	return n
}
