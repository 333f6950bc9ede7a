package db_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestOpenSettings(t *testing.T) {
	t.Parallel()
	pool := check.Must(db.Open(t.Context(), db.Config{URL: dbtest.URL(t), MaxConns: 3, StatementTimeout: 1500 * time.Millisecond, IdleTimeout: 2500 * time.Millisecond}))(t)
	defer pool.Close()
	check.Equal(t, "MaxConns", pool.Config().MaxConns, 3)
	for name, want := range map[string]string{
		"application_name":  "coppice",
		"jit":               "off",
		"plan_cache_mode":   planCacheMode(t, pool),
		"enable_seqscan":    enableSeqscan(t, pool),
		"statement_timeout": "1500ms",

		"idle_in_transaction_session_timeout": "2500ms",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
}

// planCacheMode is what Open sets: on Citus, plans need to know the shard.
func planCacheMode(t *testing.T, h db.DBTX) string {
	t.Helper()
	distributed := check.Must(db.Distributed(t.Context(), h))(t)
	if distributed {
		return "auto"
	}
	return "force_generic_plan"
}

// enableSeqscan is what Open sets: on Citus, the nodes plan what reads tables.
func enableSeqscan(t *testing.T, h db.DBTX) string {
	t.Helper()
	if planCacheMode(t, h) == "auto" {
		return "on"
	}
	return "off"
}

// What the URL says wins over what Open would set.
func TestOpenSetsWhatTheURLLeavesOpen(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	for _, more := range []string{"&plan_cache_mode=force_custom_plan&statement_timeout=1234", "&options=-c%20plan_cache_mode%3Dforce_custom_plan%20-c%20statement_timeout%3D1234"} {
		if !strings.Contains(url, "?") {
			more = "?" + more[1:]
		}
		pool := check.Must(db.Open(t.Context(), db.Config{URL: url + more, StatementTimeout: time.Second}))(t)
		for name, want := range map[string]string{"plan_cache_mode": "force_custom_plan", "statement_timeout": "1234ms", "jit": "off"} {
			var got string
			if err := pool.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %q, %v; want %q", more, name, got, err, want)
			}
		}
		pool.Close()
	}
}

func TestStatementTimeout(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.StatementTimeout(200*time.Millisecond))
	_, err := pool.Exec(t.Context(), "select pg_sleep(60)")
	e := (*pgconn.PgError)(nil)
	check.That(t, errors.As(err, &e) && e.Code == "57014", "a statement over its time: %v; want query_canceled", err)
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
		check.That(t, err != nil && strings.HasPrefix(err.Error(), want), "%s: %v; want %s", url, err, want)
	}
}

// The machine of a server may lose its power within a transaction. Postgres, which
// isn't told, ends it, so that others get its locks.
func TestIdleTransaction(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	open := func(idle time.Duration) *pgxpool.Pool {
		pool := check.Must(db.Open(t.Context(), db.Config{URL: url, IdleTimeout: idle}))(t)
		t.Cleanup(pool.Close)
		return pool
	}
	gone := check.Must(open(500 * time.Millisecond).Begin(t.Context()))(t)
	defer gone.Rollback(context.Background())
	check.Must(gone.Exec(t.Context(), "select pg_advisory_xact_lock(1)"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := open(0).Exec(ctx, "select pg_advisory_xact_lock(1)"); err != nil {
		t.Errorf("the lock of a transaction that does nothing: %v", err)
	}
	// Its server wakes up.
	_, err := gone.Exec(t.Context(), "select 1")
	if db.Wrap(&err, "on"); !errors.Is(err, fault.Unavailable) {
		t.Errorf("a statement of the transaction that was ended: %v", err)
	}
}

// An address that takes connections and never answers is told of, and given up.
func TestOpenGivesUpOnSilence(t *testing.T) {
	t.Parallel()
	silent := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	url := "postgres://ada:secret@" + silent.Addr().String() + "/x"
	if conf := check.Must(db.Config{URL: url}.Parse())(t); conf.ConnConfig.ConnectTimeout != db.DefaultConnectTimeout {
		t.Errorf("without connect_timeout an attempt takes %v", conf.ConnConfig.ConnectTimeout)
	}
	told, log := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := db.Open(t.Context(), db.Config{URL: url + "?connect_timeout=4", Logger: slog.New(slog.NewTextHandler(log, nil))})
		done <- err
		log.Close()
	}()
	line := check.Must(io.ReadAll(told))(t)
	wants := "address=" + silent.Addr().String() + " gives_up_after=4s"
	check.That(t, strings.Contains(string(line), wants), "the log says %q, and not %s", line, wants)
	if err := <-done; err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}
