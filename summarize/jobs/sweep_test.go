package jobs

import (
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// folded makes a conversation whose summary the digest wrote.
func folded(t *testing.T, store *tree.Store, cfg summarize.Config) uuid.UUID {
	t.Helper()
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 60)
	if k, err := service(t, store, cfg).Compact(t.Context(), id, head.ID, summarize.TriggerReply, nil); err != nil || k.Model != digest.Name {
		t.Fatalf("%s by %q, %v", k.Outcome, k.Model, err)
	}
	return id
}

// A server that starts makes the digest's summaries again, of any tenant, though
// nobody appends to their branches.
func TestSweepHeals(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	cfg, down := outage()
	plain := tree.New(pool)
	ids := []uuid.UUID{folded(t, plain, cfg), folded(t, plain.ForTenant("another"), cfg)}
	down.Store(false)
	workerOn(t, pool, "one", cfg)
	for _, id := range ids {
		eventually(t, "the model's summary", func() bool {
			return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary' and model = 'fake'", id) > 0
		})
	}
}

// A sweep queues a few jobs, and none while those wait. It goes on where it ended,
// and begins again after the last conversation. What is healed is left alone.
func TestSweepIsBounded(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	cfg, down := outage()
	plain := tree.New(pool)
	for range sweepHeals + 2 {
		folded(t, plain, cfg)
	}
	down.Store(false)
	w, err := New(pool, service(t, plain, cfg), Config{ID: "queues only", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	s := &sweeper{w: w}
	sweep := func(want int) {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, pool, "select count(*) from river_job where kind = 'healing'"); n != want {
			t.Errorf("%d jobs, want %d", n, want)
		}
	}
	sweep(sweepHeals)
	sweep(sweepHeals)
	if _, err := pool.Exec(t.Context(), "delete from river_job"); err != nil {
		t.Fatal(err)
	}
	sweep(2)
	if s.after != uuid.Nil {
		t.Error("it doesn't begin again")
	}
}
