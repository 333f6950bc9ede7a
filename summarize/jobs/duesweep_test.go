package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A message whose job was lost, as a crash between the commits of two nodes loses
// it, gets one by the next sweep: on whichever branch it is, and whose it is.
// Branches that aren't due get none, and a branch that has a job gets no other.
func TestDueSweepFindsWhatHasNoJob(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool).ForTenant("acme")
	w, err := New(pool, service(t, tree.New(pool), summarize.Config{}), Config{ID: t.Name(), Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	due, side, short := conversation(t, plain), conversation(t, plain), conversation(t, plain)
	talk(t, plain, due, uuid.Nil, 40)
	talk(t, plain, side, uuid.Nil, 40)
	add(t, plain, side, uuid.Nil, `{"role":"user","content":"The newest branch, which is short."}`)
	talk(t, plain, short, uuid.Nil, 1)
	const queued = "select count(*) from river_job where kind = 'compaction' and args ->> 'tenant_id' = 'acme' and args ->> 'conversation_id' = $1"
	for range 2 {
		if err := w.sweepDue(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[uuid.UUID]int{due: 1, side: 1, short: 0} {
			if n := count(t, pool, queued, id.String()); n != want {
				t.Errorf("%d jobs of a conversation, want %d", n, want)
			}
		}
	}
}

// A server that is told to sweeps as it starts, and the compaction follows.
func TestServersSweepForDueBranchesAtTheirStart(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	id := conversation(t, plain)
	talk(t, plain, id, uuid.Nil, 40)
	w, err := New(pool, service(t, plain, summarize.Config{}), Config{ID: t.Name(), SweepDue: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a compaction", func() bool { return count(t, pool, "select count(*) from compactions where outcome = 'saved'") > 0 })
	if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if n := count(t, pool, "select count(*) from river_job where kind = 'due_sweep'"); n != 1 {
		t.Errorf("%d sweeps", n)
	}
}
