package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A job is queued with its append or not at all.
func TestJobIsAtomic(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := talk(t, plain, id, uuid.Nil, 40)
	w, err := New(pool, service(t, plain, summarize.Config{}), Config{ID: "queues only", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	talk(t, tree.New(tx, tree.WithAppendHook(w)), id, head.ID, 1)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, pool, "select count(*) from river_job"); n != 0 {
		t.Errorf("%d jobs of an append that was undone", n)
	}
	// Many appends queue one job.
	talk(t, tree.New(pool, tree.WithAppendHook(w)), id, head.ID, 5)
	if n := count(t, pool, "select count(*) from river_job"); n != 1 {
		t.Errorf("%d jobs after ten appends over the trigger, want 1", n)
	}
}

// One look at a branch is enough for all that is appended to it within its
// room: below what was appended, and beside it.
func TestOneLookIsEnough(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := talk(t, plain, id, uuid.Nil, 2)
	store, looks := queueOn(t, pool)
	body := json.RawMessage(`{"role":"user","content":"And then?"}`)
	for range 3 {
		m, _, err := store.Append(t.Context(), id, head.ID, tree.NewMessage{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Append(t.Context(), id, m.ID, tree.NewMessage{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if looks.n != 1 {
		t.Errorf("%d looks for six appends, want 1", looks.n)
	}
}

// While a job is on its way, what is appended meanwhile isn't looked at one by
// one: the job looks at what the branch has become.
func TestQueuedBranchNeedsNoLook(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := talk(t, plain, id, uuid.Nil, 40)
	store, looks := queueOn(t, pool)
	for range 5 {
		head = add(t, store, id, head.ID, `{"role":"user","content":"More."}`)
	}
	if looks.n != 1 {
		t.Errorf("%d looks at a branch that is queued, want 1", looks.n)
	}
	// Not for long, as the job may be done by another server.
	for range smallSettings().Budget().Trigger / 4 {
		head = add(t, store, id, head.ID, `{"role":"user","content":"More."}`)
	}
	if looks.n < 2 {
		t.Error("a branch that goes on to grow is not looked at again")
	}
}

// A job ends though its branch grows all the while, once what it grows by is
// within its room; and what comes next needs no look.
func TestJobOfABranchThatGrows(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	plain := tree.New(pool)
	id := conversation(t, plain)
	var head atomic.Value // of type uuid.UUID
	head.Store(talk(t, plain, id, uuid.Nil, 40).ID)
	growing := dbtest.AfterQuery(t, pool, "GetView", func() {
		m, _, err := plain.Append(context.Background(), id, head.Load().(uuid.UUID), tree.NewMessage{Body: messageBody("user", "More.")})
		if err != nil {
			t.Error(err)
			return
		}
		head.Store(m.ID)
	})
	w, err := New(pool, service(t, tree.New(growing), summarize.Config{}), Config{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	looks := &counted{AppendHook: w}
	store := tree.New(pool, tree.WithAppendHook(looks))
	head.Store(add(t, store, id, head.Load().(uuid.UUID), `{"role":"user","content":"Go on."}`).ID)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop(context.Background()) })
	eventually(t, "the job to be done", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	if n := count(t, pool, "select count(*) from nodes where kind = 'summary'"); n != 1 {
		t.Errorf("%d summaries, want 1", n)
	}
	looks.n = 0
	add(t, store, id, head.Load().(uuid.UUID), `{"role":"user","content":"Go on."}`)
	if looks.n != 0 {
		t.Error("what follows a job is looked at, though the job knows what room there is")
	}
}

// queueOn gives a store whose appends queue jobs that nobody works off, and
// counts what they look at.
func queueOn(t *testing.T, pool *pgxpool.Pool) (*tree.Store, *counted) {
	t.Helper()
	w, err := New(pool, service(t, tree.New(pool), summarize.Config{}), Config{ID: "queues only", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	looks := &counted{AppendHook: w}
	return tree.New(pool, tree.WithAppendHook(looks)), looks
}

type counted struct {
	tree.AppendHook
	n int
}

func (c *counted) Wants(conversationID, parentID uuid.UUID, tokens, messages int) bool {
	wants := c.AppendHook.Wants(conversationID, parentID, tokens, messages)
	if wants {
		c.n++
	}
	return wants
}

// An append doesn't wait for a summarizer that hangs.
func TestAppendDoesNotWait(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	started := make(chan struct{}, 100)
	hanging := &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		started <- struct{}{}
		<-ctx.Done()
		return llm.Response{}, ctx.Err()
	}}
	store, w := workerOn(t, pool, "hangs", summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: hanging, Window: 100_000, Timeout: time.Minute}}}})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 40)
	<-started
	talk(t, store, id, head.ID, 10) // while the job is under way
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stopping a worker that hangs: %v", err)
	}
}
