package db_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
)

func TestOpenSettings(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(t.Context(), db.Config{URL: dbtest.URL(t), MaxConns: 3, StatementTimeout: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := pool.Config().MaxConns; n != 3 {
		t.Errorf("MaxConns = %d", n)
	}
	for name, want := range map[string]string{
		"application_name":  "coppice",
		"jit":               "off",
		"plan_cache_mode":   "force_generic_plan",
		"statement_timeout": "1500ms",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestStatementTimeout(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.StatementTimeout(2*time.Second))
	_, err := pool.Exec(t.Context(), "select pg_sleep(60)")
	if e := (*pgconn.PgError)(nil); !errors.As(err, &e) || e.Code != "57014" {
		t.Errorf("a statement over its time: %v; want query_canceled", err)
	}
}

func TestOpenReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://[": "db.Open: the database URL can't be read",
		"postgres://localhost:1/nowhere?connect_timeout=5": "db.Open: the database doesn't answer",
	} {
		pool, err := db.Open(t.Context(), db.Config{URL: url})
		if err == nil {
			pool.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", url, err, want)
		}
	}
}
