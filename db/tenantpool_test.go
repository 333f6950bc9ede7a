package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestTenantPool has a tenant hold its half of a pool in every way in which a handle
// holds a connection. The tenant's next statement waits until one is given back, and
// another tenant's doesn't wait.
func TestTenantPool(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := db.NewTenantPool(dbtest.New(t, dbtest.MaxConns(3))) // of which two are half
	busy, other := pool.Of("busy"), pool.Of("other")
	begin := func() func() {
		tx := check.Must(busy.Begin(ctx))(t)
		return func() { _ = tx.Rollback(ctx) }
	}
	defer begin()()
	for name, hold := range map[string]func() (leave func()){
		"a transaction": begin,
		"a commit": func() func() {
			tx := check.Must(busy.Begin(ctx))(t)
			return func() { _ = tx.Commit(ctx) }
		},
		"rows": func() func() { return check.Must(busy.Query(ctx, "select generate_series(1, 2)"))(t).Close },
		"all rows": func() func() {
			rows := check.Must(busy.Query(ctx, "select 1"))(t)
			return func() {
				for more := true; more; more = rows.Next() {
				}
			}
		},
		"a row": func() func() {
			row := busy.QueryRow(ctx, "select 1")
			return func() { _ = row.Scan(new(int)) }
		},
		"a batch": func() func() {
			var b pgx.Batch
			b.Queue("select 1")
			results := busy.SendBatch(ctx, &b)
			return func() { _ = results.Close() }
		},
	} {
		leave := hold()
		done := make(chan error)
		go func() {
			_, err := busy.Exec(ctx, "select 1")
			done <- err
		}()
		for pool.Waiting("busy") == 0 {
			select {
			case err := <-done:
				t.Fatalf("%s: the tenant has a third connection, %v", name, err)
			case <-time.After(time.Millisecond):
			}
		}
		if _, err := other.Exec(ctx, "select 1"); err != nil {
			t.Errorf("%s: another tenant: %v", name, err)
		}
		leave()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A statement that ends while it waits gives its place to the next, and tells why it ended.
func TestTenantPoolStopsWaiting(t *testing.T) {
	t.Parallel()
	pool := db.NewTenantPool(dbtest.New(t, dbtest.MaxConns(1)))
	h := pool.Of("busy")
	tx := check.Must(h.Begin(t.Context()))(t)
	ended, end := context.WithCancel(t.Context())
	end()
	var b pgx.Batch
	b.Queue("select 1")
	_, exec := h.Exec(ended, "select 1")
	_, query := h.Query(ended, "select 1")
	_, begin := h.Begin(ended)
	_, err := h.CopyFrom(ended, pgx.Identifier{"changes"}, nil, nil)
	for name, err := range map[string]error{
		"Exec": exec, "Query": query, "Begin": begin, "CopyFrom": err, "QueryRow": h.QueryRow(ended, "select 1").Scan(), "SendBatch": h.SendBatch(ended, &b).Close(),
	} {
		check.That(t, errors.Is(err, context.Canceled), "%s: %v", name, err)
	}
	n := pool.Waiting("busy")
	check.That(t, n == 0, "%d wait", n)
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := h.Exec(t.Context(), "select 1"); err != nil {
		t.Error(err)
	}
}

// A batch without a connection tells why, and not that its request was canceled.
func TestBatchTellsWhyItWasNotSent(t *testing.T) {
	t.Parallel()
	pool := db.NewTenantPool(dbtest.New(t))
	pool.Close()
	var b pgx.Batch
	b.Queue("select 1")
	results := pool.Of("tenant").SendBatch(t.Context(), &b)
	_, err := results.Exec()
	rows, failed := results.Query()
	for _, err := range []error{err, failed, rows.Err(), results.QueryRow().Scan(), results.Close()} {
		check.That(t, err != nil && !errors.Is(err, context.Canceled), "%v", err)
	}
}

// The migration makes keys of tenants by the expression below.
func TestTenantKeyIsThatOfTheMigration(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, tenant := range []string{"default", "", "acme", "été", "a'b\\c"} {
		var want string
		check.NoError(t, pool.QueryRow(t.Context(), "select left(encode(sha256(convert_to($1, 'UTF8')), 'base64'), 8)", tenant).Scan(&want))
		got := db.TenantKey(tenant)
		check.That(t, got == want, "%q has the key %s, in the migration %s", tenant, got, want)
	}
}
