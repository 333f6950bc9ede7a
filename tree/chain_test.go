package tree_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// statements keeps what is sent to the database.
type statements struct{ sql []string }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.sql = append(s.sql, q.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.sql = append(s.sql, "batch")
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (s *statements) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, c pgx.TraceCopyFromStartData) context.Context {
	s.sql = append(s.sql, "copy into "+c.TableName.Sanitize())
	return ctx
}
func (s *statements) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

// counted opens a database of the test's own, and keeps what is sent to it.
func counted(t *testing.T) (*pgxpool.Pool, *statements) {
	t.Helper()
	var sent statements
	pool, err := db.Open(t.Context(), db.Config{URL: dbtest.URL(t), MaxConns: 1, Tracer: &sent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, &sent
}

func chainOf(length int) []tree.NewMessage {
	ms := make([]tree.NewMessage, length)
	for i := range ms {
		ms[i] = user(fmt.Sprint(i))
		ms[i].ID = uuid.New()
	}
	return ms
}

// A chain takes as many round trips for a thousand messages as for two: stored
// for the first time, sent again, or refused.
func TestChainTakesAFixedNumberOfRoundTrips(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	trips := func(what string, chain []tree.NewMessage, created, conflict bool) int {
		t.Helper()
		sent.sql = nil
		got, was, err := s.AppendChain(t.Context(), c.ID, root.ID, chain)
		if errors.Is(err, fault.Conflict) != conflict || !conflict && (err != nil || was != created || len(got) != len(chain)) {
			t.Errorf("%s of %d: %d messages, created %t, %v", what, len(chain), len(got), was, err)
		}
		return len(sent.sql)
	}
	var want []int
	for _, length := range []int{2, tree.MaxChain} {
		chain := chainOf(length)
		broken := append(append([]tree.NewMessage{}, chain[:length-1]...), chainOf(1)...)
		rewritten := append(append([]tree.NewMessage{}, chain[:length-1]...), user("another"))
		rewritten[length-1].ID = chain[length-1].ID
		behind := append(chainOf(length-1), chain[length-1])
		got := []int{
			trips("a new chain", chain, true, false), trips("the chain again", chain, false, false),
			trips("a chain with a new end", broken, false, true), trips("a chain with another end", rewritten, false, true),
			trips("a new chain with a stored end", behind, false, true),
		}
		t.Logf("%d messages: %v round trips", length, got)
		if want == nil {
			want = got
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("a chain of %d takes %v round trips, and one of 2 %v", length, got, want)
		}
	}
}

// A chain sent again says what a read of its messages says.
func TestReplayedChainIsAsItIsRead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	chain := chainOf(3)
	if _, _, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, chain); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, c.ID, chain[0].ID, user("a sibling of the second"))
	mustAppend(t, s, c.ID, uuid.Nil, user("another root"))
	again, created, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, chain)
	if err != nil || created || len(again) != len(chain) {
		t.Fatalf("%d messages, created %t, %v", len(again), created, err)
	}
	for _, m := range again {
		read, err := s.Message(t.Context(), c.ID, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(m.AppendJSON(nil)), string(read.AppendJSON(nil)); got != want {
			t.Errorf("the chain again says\n%s\nand a read\n%s", got, want)
		}
	}
	// Conflicts name their message.
	for field, ids := range map[string][]uuid.UUID{
		"messages[1].id": {chain[0].ID, uuid.New(), chain[2].ID},
		"messages[0].id": {chain[1].ID},
		"messages[2].id": {uuid.New(), uuid.New(), chain[2].ID},
	} {
		ms := chainOf(len(ids))
		for i, id := range ids {
			if ms[i].ID = id; field == "messages[1].id" {
				ms[i].Body = chain[i].Body
			}
		}
		var e *fault.Error
		if _, _, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, ms); !errors.As(err, &e) || e.Code != "id_conflict" || e.Field != field {
			t.Errorf("%v; want a conflict of %s", err, field)
		}
	}
}
