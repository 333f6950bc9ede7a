package dbtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/internal/check"
)

// State is a digest of all rows of these tables.
func State(t testing.TB, pool *pgxpool.Pool, tables ...string) (digests string) {
	t.Helper()
	for _, table := range tables {
		var digest string
		check.NoError(t, pool.QueryRow(t.Context(), "select coalesce(md5(string_agg(r::text, '|' order by r::text)), '') from "+quote(table)+" r").Scan(&digest))
		digests += digest + " "
	}
	return digests
}
