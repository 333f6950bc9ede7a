package dbtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
)

func TestNewIsMigratedAndEmpty(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, table := range []string{"conversations", "nodes", "api_keys"} {
		if n := count(t, pool, "select count(*) from "+table); n != 0 {
			t.Errorf("%s: %d rows in a new database", table, n)
		}
	}
}

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	first, second := dbtest.New(t), dbtest.New(t)
	if _, err := first.Exec(t.Context(), "create table only_here ()"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, second, "select count(*) from pg_class where relname = 'only_here'"); n != 0 {
		t.Error("a table that one database made is in another")
	}
	if n := count(t, dbtest.New(t), "select count(*) from pg_class where relname = 'only_here'"); n != 0 {
		t.Error("a table that one database made is in the template")
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), dbtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := count(t, pool, "select count(*) from pg_class where relnamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("%d relations in an empty database", n)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if n := dbtest.New(t).Config().MaxConns; n != 4 {
		t.Errorf("MaxConns = %d without an option", n)
	}
	if n := dbtest.New(t, dbtest.MaxConns(9)).Config().MaxConns; n != 9 {
		t.Errorf("MaxConns(9): %d", n)
	}
}

// A database goes with its test, even one that somebody is still connected to.
func TestDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	other := dbtest.New(t)
	var name string
	t.Run("test", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), dbtest.URL(t))
		if err != nil {
			t.Fatal(err)
		}
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
