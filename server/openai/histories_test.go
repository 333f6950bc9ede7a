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
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/tree"
)

// TestEmptyMessages holds that a message that says nothing goes to the model, where
// nothing is recorded.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	a := newAPIWith(t, openai.Recognition{Record: true})
	a.upstream.Otherwise(llmtest.Answer("Yes."))
	for empty, recorded := range map[string]int{said("system", ""): 0, said("user", ""): 0, `{"role":"assistant","content":null}`: 0, `{"role":"assistant"}`: 0, `{"role":"user","content":[{"type":"text","text":""}]}`: 1} {
		messages := []string{empty, said("user", "Hi")}
		before := len(a.listed("acme"))
		got, _ := a.ask(200, "acme", "POST", "/chat/completions", chatBody("", messages...))
		if n := len(a.listed("acme")) - before; a.prompt() != strings.Join(messages, " ") || n != recorded {
			t.Errorf("%s: %d conversations, %s", empty, n, got)
		}
	}
}

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
	lock := check.Must(pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig))(t)
	defer lock.Close(context.Background())
	check.Must(lock.Exec(t.Context(), "begin; lock table conversations in share row exclusive mode"))(t)
	waiting := func() (n int) {
		check.NoError(t, lock.QueryRow(t.Context(), `select count(*) from pg_locks where locktype = 'relation' and not granted
			and relation = 'conversations'::regclass and database = (select oid from pg_database where datname = current_database())`).Scan(&n))
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
	check.Eventually(t, "the histories to wait", func() bool { return over() || refused.Load() == asked-most && waiting() == most })
	if over() {
		t.Errorf("over %d histories of one tenant are stored at a time", most)
	}
	if status, got, _ := a.send("other", "GET", "/models", ""); status != 200 {
		t.Errorf("another tenant's request: %d %s", status, got)
	}
	check.Must(lock.Exec(t.Context(), "rollback"))(t)
	ended.Wait()
	if stored, refused := stored.Load(), refused.Load(); stored != most || refused != asked-most {
		t.Errorf("%d histories were stored and %d refused, want %d and %d", stored, refused, most, asked-most)
	}
}

// TestHistoryThatEndsInAnAnswer holds that a history which ends in an answer is
// answered, stored or not: some clients send what came of a stream that broke.
func TestHistoryThatEndsInAnAnswer(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.upstream.Otherwise(llmtest.Answer(" that is cut."))
	hi, broken := said("user", "What is a coppice?"), said("assistant", "A wood")
	for path, body := range map[string]string{"/responses": `"input":[` + hi + `,` + broken + `]`, "/chat/completions": `"messages":[` + hi + `,` + broken + `]`} {
		for _, store := range []string{"true", "false"} {
			_, header := a.ask(200, "acme", "POST", path, `{"model":"wood","store":`+store+`,`+body+`}`)
			if got := a.prompt(); !strings.HasSuffix(got, broken) || (header.Get("X-Coppice-Head-Id") != "") != (store == "true") {
				t.Errorf("%s, store %s: the model was given %s; %v", path, store, got, header)
			}
		}
	}
}
