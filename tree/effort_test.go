package tree_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// effort is what Postgres read for a call.
type effort struct {
	rows       int // of nodes and conversations
	tablePages int // of them
	indexPages int // of all their indexes
	checked    int // rows that were looked up by their ids
}

// effortOf measures a call in a transaction that is undone. A connection counts
// on until the transaction ends.
func effortOf(t testing.TB, pool *pgxpool.Pool, tenant string, call func(*tree.Store) error) effort {
	t.Helper()
	tx := dbtest.CountReads(t, pool)
	defer func() { _ = tx.Rollback(context.Background()) }()
	read := func() (e effort) {
		all := tx.Reads()
		for name, is := range all {
			switch {
			case name == "nodes" || name == "conversations":
				e.rows += is.Rows()
				e.tablePages += is.Pages
			case strings.HasPrefix(name, "nodes_") || strings.HasPrefix(name, "conversations_"):
				e.indexPages += is.Pages
			}
		}
		e.checked = all["nodes_pkey"].Fetched
		return e
	}
	s := tree.New(tx).ForTenant(tenant)
	if err := call(s); err != nil { // what is read once, as of catalogs and of pages that were changed
		t.Fatal(err)
	}
	before := read()
	noError(t, call(s))
	e := read()
	return effort{e.rows - before.rows, e.tablePages - before.tablePages, e.indexPages - before.indexPages, e.checked - before.checked}
}
