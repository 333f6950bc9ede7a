//go:build unix

package db_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// Connections through a pooler open whether it refuses their parameters or drops
// them, and prepare no statement. The settings that are missing can be given to
// the role.
func TestOpenThroughAPooler(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"that refuses parameters":      nil,
		"that refuses the mark alone":  {"ignore_startup_parameters = jit,plan_cache_mode,enable_seqscan,statement_timeout,idle_in_transaction_session_timeout"},
		"that drops parameters":        {"ignore_startup_parameters = jit,plan_cache_mode,enable_seqscan,statement_timeout,idle_in_transaction_session_timeout,coppice.direct"},
		"that keeps sessions together": {"pool_mode = session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := dbtest.URL(t)
			check.Must(connect(t, direct).Exec(t.Context(), "do $$ begin execute format('alter database %I set jit = on', current_database()); end $$"))(t)
			config := db.Config{URL: dbtest.Pooler(t, direct, 3, lines...), StatementTimeout: 1500 * time.Millisecond, IdleTimeout: 2500 * time.Millisecond}
			pool := check.Must(db.Open(t.Context(), config))(t)
			defer pool.Close()
			check.That(t, db.Pooled(pool), "the pooler was not noticed")
			if mode := pool.Config().ConnConfig.DefaultQueryExecMode; mode != pgx.QueryExecModeCacheDescribe {
				t.Errorf("statements are sent by %v", mode)
			}
			missing := check.Must(db.MissingParameters(t.Context(), pool, config))(t)
			mode, seqscan := planCacheMode(t, pool), enableSeqscan(t, pool)
			want := 5
			if seqscan == "on" {
				want = 4 // the role has the plan_cache_mode of the nodes
			}
			check.That(t, len(missing) == want, "missing parameters: %q", missing)
			conn := connect(t, direct)
			for _, statement := range missing {
				if _, err := conn.Exec(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
			// From the next connection to Postgres on they are there.
			next := connect(t, direct)
			for name, want := range map[string]string{"jit": "off", "plan_cache_mode": mode, "enable_seqscan": seqscan, "statement_timeout": "1500ms", "idle_in_transaction_session_timeout": "2500ms"} {
				var got string
				if err := next.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
					t.Errorf("%s is %q, %v; want %q", name, got, err, want)
				}
			}
		})
	}
}

func TestOpenWithoutAPooler(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	check.That(t, !db.Pooled(pool), "a pooler was noticed where there is none")
	mode := pool.Config().ConnConfig.DefaultQueryExecMode
	check.That(t, mode == pgx.QueryExecModeCacheStatement, "statements are sent by %v", mode)
	missing, err := db.MissingParameters(t.Context(), pool, db.Config{})
	check.That(t, err == nil && len(missing) == 0, "missing parameters: %q, %v", missing, err)
}

// What the URL says is left to it, but for the modes that can't send JSON.
func TestOpenThroughAPoolerAsTheURLSays(t *testing.T) {
	t.Parallel()
	url := dbtest.Pooler(t, dbtest.URL(t), 2)
	for name, want := range map[string]pgx.QueryExecMode{
		"cache_statement": pgx.QueryExecModeCacheStatement, // which poolers that know prepared statements allow
		"cache_describe":  pgx.QueryExecModeCacheDescribe,
		"exec":            pgx.QueryExecModeCacheDescribe,
		"simple_protocol": pgx.QueryExecModeCacheDescribe,
	} {
		pool := check.Must(db.Open(t.Context(), db.Config{URL: url + "&default_query_exec_mode=" + name}))(t)
		mode := pool.Config().ConnConfig.DefaultQueryExecMode
		check.That(t, mode == want, "default_query_exec_mode=%s: statements are sent by %v, want %v", name, mode, want)
		pool.Close()
	}
	refused, err := db.Open(t.Context(), db.Config{URL: url + "&lock_timeout=1000"})
	if err == nil {
		refused.Close()
	}
	check.That(t, err != nil && strings.Contains(err.Error(), "lock_timeout"),
		"a parameter of the URL that the pooler refuses: %v", err)
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
