package server

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
)

// One tenant's searches, of messages and of conversations, take their turns: as
// many of them as may be wait in the database for a lock, and other requests, of
// that tenant and of another, are answered, searches too.
func TestSearchesTakeTurns(t *testing.T) {
	t.Parallel()
	const conns, searches = 8, 4
	pool := dbtest.New(t, dbtest.MaxConns(conns))
	a := newAPIOn(t, pool, func(c *Config) { c.MaxSearches, c.RequestTimeout = searches, time.Minute })
	for _, tenant := range []string{"busy", "other"} {
		plant(t, a.store.ForTenant(tenant), tenant)
	}
	_, busy := a.newKey("busy")
	_, other := a.newKey("other")

	// From now on, who makes entries of the busy tenant waits for the lock.
	lock, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(context.Background())
	if _, err := lock.Exec(t.Context(), `select pg_advisory_lock(1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `
		create or replace function search_entry(key text, word text) returns text language plpgsql immutable strict parallel safe as $$
		begin
			if starts_with(key, '`+db.TenantKey("busy")+`') then perform pg_advisory_xact_lock_shared(1); end if;
			return key || to_hex((hashtext(word) & 16777215) >> (24 - 2 * (ascii(right(key, 1)) - 97)));
		end $$`); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		if err := lock.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database())`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var ended sync.WaitGroup
	for i := range 3 * conns {
		path := []string{"/v1/search?query=coppice", "/v1/conversations?query=coppice"}[i%2]
		ended.Go(func() {
			for ctx.Err() == nil { // again, when a search is given up
				a.send(request{method: "GET", path: path, header: bearer(busy)})
			}
		})
	}
	eventually(t, "searches that wait", func() bool { return waiting() == searches/2 })
	for i := range 5 {
		for tenant, key := range map[string]string{"busy": busy, "other": other} {
			if tenant == "busy" {
				a.must(200, nil, request{method: "GET", path: "/v1/conversations", header: bearer(key)})
				continue
			}
			a.must(201, nil, request{method: "POST", path: "/v1/conversations/" + named("other").String() + "/messages", header: bearer(key),
				body: map[string]any{"parent_id": named("other.thanks"), "role": "assistant", "content": "A coppice."}})
			a.must(200, nil, request{method: "GET", path: "/v1/search?query=coppice", header: bearer(key)})
		}
		if n := waiting(); n > searches/2 {
			t.Errorf("round %d: %d searches of one tenant are under way, want %d at most", i, n, searches/2)
		}
	}
	if n := pool.Stat().AcquiredConns(); n > searches {
		t.Errorf("%d of %d connections are in use", n, conns)
	}
	stop()
	if _, err := lock.Exec(t.Context(), `select pg_advisory_unlock(1)`); err != nil {
		t.Fatal(err)
	}
	ended.Wait()
}
