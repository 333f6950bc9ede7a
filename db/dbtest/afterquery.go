package dbtest

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// AfterQuery returns another pool on the database of a pool, which calls a function
// after each query of a name that went well, before its caller goes on: what another
// program does in between. The pool is closed when the test ends.
func AfterQuery(t testing.TB, pool *pgxpool.Pool, name string, call func()) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.ConnConfig.Tracer = afterQuery{"-- name: " + name + " ", call}
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("dbtest.AfterQuery(%s): %v", name, err)
	}
	t.Cleanup(traced.Close)
	return traced
}

type afterQuery struct {
	begin string // of the query's text
	call  func()
}

type isAfterQuery struct{}

func (a afterQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, isAfterQuery{}, strings.HasPrefix(data.SQL, a.begin))
}

func (a afterQuery) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if ctx.Value(isAfterQuery{}) == true && data.Err == nil {
		a.call()
	}
}
