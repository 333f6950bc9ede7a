package dbtest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Counter is a transaction that knows what it made Postgres read. On a distributed
// database it goes to the shards over one connection, as to another node, and counts
// there. It ends with Rollback.
type Counter struct {
	pgx.Tx
	t   testing.TB
	ask string
}

// Reads is what was read of a table or of an index.
type Reads struct {
	Returned, Fetched int // rows of a table that a scan gave, and that an index led to; entries of an index
	Pages             int
}

// Rows are all rows of a table.
func (r Reads) Rows() int { return r.Returned + r.Fetched }

// CountReads begins a transaction that counts.
func CountReads(t testing.TB, pool *pgxpool.Pool) *Counter {
	t.Helper()
	// A shard and its indexes have a number behind their names.
	const all = `select jsonb_object_agg(name, reads) from (
		select regexp_replace(relname, '_\d{6,}$', '') as name, jsonb_build_object(
			'Returned', sum(pg_stat_get_xact_tuples_returned(oid)),
			'Fetched', sum(pg_stat_get_xact_tuples_fetched(oid)),
			'Pages', sum(pg_stat_get_xact_blocks_fetched(oid))) as reads
		from pg_class
		where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace
		group by 1) each`
	c := &Counter{t: t, ask: all}
	citus := start(t).citus
	if citus {
		if _, err := pool.Exec(t.Context(), "create or replace function reads() returns jsonb language sql volatile as $$"+all+"$$"); err != nil {
			t.Fatalf("dbtest.CountReads: %v", err)
		}
	}
	var err error
	if c.Tx, err = pool.Begin(t.Context()); err != nil {
		t.Fatalf("dbtest.CountReads: %v", err)
	}
	if citus {
		const nodes = "set local citus.enable_local_execution = off; set local citus.max_adaptive_executor_pool_size = 1"
		if _, err := c.Exec(t.Context(), nodes, pgx.QueryExecModeSimpleProtocol); err != nil {
			_ = c.Rollback(context.Background())
			t.Fatalf("dbtest.CountReads: %v", err)
		}
		c.ask = "select reads() from (select count(*) from shares where conversation_id = '00000000-0000-0000-0000-000000000000') none"
	}
	return c
}

// Reads returns what was read of each table and index. Only the difference of two
// calls says something.
func (c *Counter) Reads() (all map[string]Reads) {
	c.t.Helper()
	var text []byte
	err := c.QueryRow(c.t.Context(), c.ask).Scan(&text)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		c.t.Fatalf("dbtest.Counter: %v", err)
	}
	return all
}
