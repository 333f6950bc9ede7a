package dbtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// A database goes with its test, even one that somebody is still connected to.
func TestDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	other := dbtest.New(t)
	var name string
	t.Run("test", func(t *testing.T) {
		conn := must(pgx.Connect(t.Context(), dbtest.URL(t)))(t)
		name = conn.Config().Database
		if n := count(t, other, "select count(*) from pg_database where datname = $1", name); n != 1 {
			t.Fatalf("%d databases of the test's name", n)
		}
		// Left open on purpose.
	})
	if n := count(t, other, "select count(*) from pg_database where datname = $1", name); n != 0 {
		t.Error("the database outlived its test")
	}
}

func count(t *testing.T, pool *pgxpool.Pool, query string, args ...any) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must gives a call's result, and ends the test if the call failed.
func must[T any](got T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return got
	}
}
