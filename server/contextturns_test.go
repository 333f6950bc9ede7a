package server

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// Contexts with attachments, which may be many bytes, count among the reads of a
// tenant. Contexts that only name them don't.
func TestContextsWithAttachmentsTakeTurns(t *testing.T) {
	t.Parallel()
	const conns, reads, asked = 10, 4, 6
	pool := dbtest.New(t, dbtest.MaxConns(conns))
	a := newAPIOn(t, pool, func(c *Config) { c.MaxReads, c.RequestTimeout = reads, 2*time.Minute })
	plant(t, a.store, "c")
	var notes struct {
		Part struct {
			File struct {
				ID string `json:"file_id"`
			}
		}
	}
	a.must(201, &notes, request{method: "POST", path: "/v1/attachments?name=notes.md", body: "# Hazel & ash", header: octets})
	a.must(201, nil, request{method: "POST", path: fill(conversationPathOf + "/messages"), body: `{"role":"user","content":[{"type":"file","file":{"file_id":"` + notes.Part.File.ID + `"}}]}`})

	lock, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(context.Background())
	if _, err := lock.Exec(t.Context(), "begin; lock table attachments"); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		if err := lock.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'relation' and not granted
			and relation = 'attachments'::regclass and database = (select oid from pg_database where datname = current_database())`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	path := fill(conversationPathOf + "/branches/active/context")
	var ended sync.WaitGroup
	for range asked {
		ended.Go(func() {
			if res := a.send(request{method: "GET", path: path}); res.StatusCode != http.StatusOK {
				t.Errorf("status %d", res.StatusCode)
			}
		})
	}
	underWay := a.server.limits.reads.underWay
	within(t, 2*time.Minute, "contexts that wait for bytes, and others that wait to read", func() bool {
		return underWay() == asked && waiting() == reads/2 || waiting() > reads/2
	})
	named := make(chan struct{})
	go func() {
		defer close(named)
		for range 5 {
			if res := a.send(request{method: "GET", path: path + "?attachments=names"}); res.StatusCode != http.StatusOK {
				t.Errorf("names: status %d", res.StatusCode)
			}
		}
	}()
	within(t, 2*time.Minute, "contexts that only name attachments", func() bool {
		if n := underWay(); n > asked {
			t.Errorf("%d requests read or wait to, and %d contexts were asked for with attachments", n, asked)
			return true
		}
		select {
		case <-named:
			return true
		default:
			return false
		}
	})
	if n := waiting(); n != reads/2 {
		t.Errorf("%d contexts read attachments, and %d of a tenant may", n, reads/2)
	}
	if _, err := lock.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	ended.Wait() // as each leaves
	<-named
}
