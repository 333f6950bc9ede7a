package db_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	pool := dbtest.New(t, dbtest.StatementTimeout(10*time.Millisecond))
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

// A database in which a message in Chinese couldn't be stored is refused before
// anything is.
func TestMigrateRefusesOtherEncodings(t *testing.T) {
	t.Parallel()
	admin := connect(t, dbtest.Empty(t))
	name := "coppice_latin_" + strings.ToLower(rand.Text())
	if _, err := admin.Exec(t.Context(), "create database "+name+" encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "drop database "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	config := admin.Config().Copy()
	url := fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s", config.Host, config.Port, config.User, config.Password, name)
	if _, _, err := db.Migrate(t.Context(), url); !errors.Is(err, db.ErrEncoding) {
		t.Errorf("migrating SQL_ASCII: %v", err)
	}
}
