package openai_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// TestLongHistoriesTakeTurns holds that histories of more messages than one commit
// takes are stored in turns, as imports are: those of one tenant leave connections to
// the database for others. No history can be stored while the test holds a lock. So
// those that have a turn keep it, and all others are told that they waited in vain.
func TestLongHistoriesTakeTurns(t *testing.T) {
	t.Parallel()
	const most, conns = server.DefaultMaxImports / 2, server.DefaultMaxImports/2 + 3
	const asked = 3 * conns
	pool := dbtest.New(t, dbtest.MaxConns(conns))
	a := setup{pool: pool}.serve(t)
	a.upstream.Otherwise(llmtest.Answer("ok"))
	hasty := a.again(func(s *setup) { s.timeout = 2 * time.Second })
	lock, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(context.Background())
	if _, err := lock.Exec(t.Context(), "begin; lock table conversations in share row exclusive mode"); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		if err := lock.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'relation' and not granted
			and relation = 'conversations'::regclass and database = (select oid from pg_database where datname = current_database())`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var stored, refused atomic.Int32
	var ended sync.WaitGroup
	for i := range asked {
		body := chatBody(store, slices.Repeat([]string{said("user", fmt.Sprint("History ", i))}, tree.MaxChain+1)...)
		ended.Go(func() {
			switch status, got, _ := hasty.send("acme", "POST", "/chat/completions", body); {
			case status == 200:
				stored.Add(1)
			case status == 429 && strings.Contains(got, "imports"):
				refused.Add(1)
			default:
				t.Errorf("%d: %s", status, got)
			}
		})
	}
	over := func() bool { return waiting() > most }
	a.eventually(func() bool { return over() || refused.Load() == asked-most && waiting() == most })
	if over() {
		t.Errorf("over %d histories of one tenant are stored at a time", most)
	}
	if status, got, _ := a.send("other", "GET", "/chat/completions", ""); status != 200 {
		t.Errorf("another tenant's request: %d %s", status, got)
	}
	if _, err := lock.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	ended.Wait()
	if stored, refused := stored.Load(), refused.Load(); stored != most || refused != asked-most {
		t.Errorf("%d histories were stored and %d refused, want %d and %d", stored, refused, most, asked-most)
	}
}
