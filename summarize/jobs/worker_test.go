package jobs

import (
	"context"
	"errors"
	"strings"
	"sync"
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

// workerOn starts a server's worker and gives the store that appends through
// it.
func workerOn(t *testing.T, pool *pgxpool.Pool, id string, cfg summarize.Config) (*tree.Store, *Worker) {
	t.Helper()
	w, err := New(pool, service(t, tree.New(pool), cfg), Config{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			t.Errorf("stopping %s: %v", id, err)
		}
	})
	return tree.New(pool, tree.WithAppendHook(w)), w
}

// An append over the trigger queues a job with it, and a worker compacts.
func TestWorkerCompacts(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	store, _ := workerOn(t, pool, "one", summarize.Config{})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 8)
	if n := count(t, pool, "select count(*) from river_job"); n != 0 {
		t.Errorf("%d jobs below the trigger", n)
	}
	for range 10 {
		head = talk(t, store, id, head.ID, 3)
	}
	eventually(t, "the jobs' end", func() bool {
		return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary'", id) > 0 &&
			count(t, pool, "select count(*) from river_job where state <> 'completed'") == 0
	})
	if c := contextOf(t, service(t, store, summarize.Config{}), id, head.ID); c.Summary == nil || !c.Complete || c.Usage.ContextTokens > smallSettings().Budget().Trigger {
		t.Errorf("after all jobs the head's context has summary %v, complete %t, %+v", c.Summary, c.Complete, c.Usage)
	}
	// A chain counts as well, and so does another tenant's conversation.
	other := store.ForTenant("other")
	theirs := conversation(t, other)
	var chain []tree.NewMessage
	for range 80 {
		chain = append(chain, tree.NewMessage{Body: messageBody("user", "One of many messages that come all at once, as an import of a transcript does.")})
	}
	if _, _, err := other.AppendChain(t.Context(), theirs, uuid.Nil, chain); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other tenant's summary", func() bool {
		return count(t, pool, "select count(*) from compactions where conversation_id = $1 and outcome = 'saved'", theirs) > 0
	})
}

// A server that was killed amid a job takes it up again when it starts, and
// what the dead life still does comes to nothing.
func TestRestartTakesJobsUp(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(12))
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := talk(t, plain, id, uuid.Nil, 40)
	queue, err := New(pool, service(t, plain, summarize.Config{}), Config{ID: "queues only", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	talk(t, tree.New(pool, tree.WithAppendHook(queue)), id, head.ID, 1)
	// As a kill -9 leaves it: running, by a server that is no more.
	if _, err := pool.Exec(t.Context(), "update river_job set state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{other,killed}'"); err != nil {
		t.Fatal(err)
	}
	workerOn(t, pool, "another", summarize.Config{})
	workerOn(t, pool, "killed", summarize.Config{})
	eventually(t, "the job to be done", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	if n := count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary'", id); n != 1 {
		t.Errorf("%d summaries, want 1", n)
	}
	if n := count(t, pool, "select attempt from river_job"); n != 1 {
		t.Errorf("the job ended at attempt %d: what was interrupted counts", n)
	}
}

// A conversation whose summarizer fails is tried less and less often, and no
// other job is queued for it meanwhile.
func TestBackoff(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	var calls atomic.Int32
	failing := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		calls.Add(1)
		return llmtest.Response("no"), nil
	}}
	store, _ := workerOn(t, pool, "fails", summarize.Config{Settings: withoutDigest(smallSettings()), Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: failing, Window: 100_000}}}})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 40)
	eventually(t, "a failure", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'retryable'") == 1
	})
	talk(t, store, id, head.ID, 20)
	if n := count(t, pool, "select count(*) from river_job"); n != 1 {
		t.Errorf("%d jobs, want the one that backs off", n)
	}
	if n := calls.Load(); n > 3 {
		t.Errorf("the model was called %d times", n)
	}
}

// A failure of the database is not the summarizer's, so it uses up no attempt
// and the job doesn't back off.
func TestDatabaseFailureIsNoAttempt(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	var once sync.Once
	breaking := &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		once.Do(func() { // between the reading of the branch and the saving of the summary
			if _, err := pool.Exec(ctx, "alter table compactions rename to compactions_away"); err != nil {
				t.Error(err)
			}
		})
		return llmtest.Response("They spoke of the matter at some length, and then went on."), nil
	}}
	store, _ := workerOn(t, pool, "fails", summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: breaking, Window: 100_000}}}})
	id := conversation(t, store)
	head := talk(t, tree.New(pool), id, uuid.Nil, 40)
	talk(t, store, id, head.ID, 1)
	eventually(t, "a failure", func() bool {
		return count(t, pool, "select count(*) from river_job where metadata ->> 'snoozes' = '1'") == 1
	})
	if _, err := pool.Exec(t.Context(), "alter table compactions_away rename to compactions"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job's end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == 1
	})
	if n := count(t, pool, "select attempt from river_job"); n != 1 {
		t.Errorf("the job ended at attempt %d", n)
	}
	if n := count(t, pool, "select count(*) from nodes where kind = 'summary'"); n == 0 {
		t.Error("there is no summary")
	}
}

// Two servers share the work, and however their jobs, appends and requests
// meet, background work leaves one summary per anchor.
func TestTwoServersShareTheWork(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(24))
	var by [2]atomic.Int32
	var stores [2]*tree.Store
	for i := range stores {
		model := &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
			by[i].Add(1)
			return llmtest.Response(written), nil
		}}
		stores[i], _ = workerOn(t, pool, []string{"left", "right"}[i], summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000}}}})
	}
	var ids []uuid.UUID
	for range 4 {
		ids = append(ids, conversation(t, stores[0]))
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			var head tree.Message
			for n := range 20 {
				head = talk(t, stores[(i+n)%2], id, head.ID, 3)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		eventually(t, "every conversation's summary", func() bool {
			return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary'", id) > 0
		})
	}
	if n := count(t, pool, "select count(*) from (select 1 from nodes where kind = 'summary' group by conversation_id, parent_id having count(*) > 1) twice"); n > 0 {
		t.Errorf("%d anchors have two summaries", n)
	}
	if by[0].Load() == 0 && by[1].Load() == 0 {
		t.Error("no server worked")
	}
}

func TestFrontier(t *testing.T) {
	t.Parallel()
	var f headroomCache
	c := uuid.New()
	a, d := uuid.New(), uuid.New()
	quiet := func(conversation, parent uuid.UUID, tokens, messages int) bool {
		_, quiet := f.below(conversation, parent, tokens, messages)
		return quiet
	}
	if quiet(c, uuid.Nil, 1, 1) {
		t.Error("an unknown parent is not known to be quiet")
	}
	f.set(c, a, summarize.Room{Tokens: 100, Messages: 3}, headroomAge)
	if !quiet(c, a, 60, 1) || !quiet(c, a, 99, 2) {
		t.Error("what is appended within the room is quiet")
	}
	if quiet(c, a, 100, 1) || quiet(c, a, 60, 3) {
		t.Error("what fills the room is not quiet")
	}
	if known, _ := f.below(c, a, 60, 2); known.Tokens != 40 || known.Messages != 1 {
		t.Errorf("the room below is %+v", known)
	}
	if quiet(uuid.New(), a, 1, 1) {
		t.Error("another conversation's message of the same id is another")
	}
	f.set(c, d, summarize.Room{Tokens: 100, Messages: 3}, -headroomAge)
	if quiet(c, d, 1, 1) {
		t.Error("a head that was looked at long ago is not known to be quiet")
	}
	for range 3 * headroomCacheSize {
		f.set(c, uuid.New(), summarize.Room{Tokens: 1, Messages: 1}, headroomAge)
	}
	if len(f.now)+len(f.old) > 2*headroomCacheSize {
		t.Errorf("it remembers %d heads", len(f.now)+len(f.old))
	}
}

// An append that commits between a job's last look at the branch and its end is
// seen by it or queues another: here the transaction of the append is open while
// the job comes to its end.
func TestAppendWhileAJobEnds(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	var w *Worker
	var once sync.Once
	appended := make(chan uuid.UUID, 1)
	observe := func(k tree.Compaction) {
		once.Do(func() {
			tx, err := pool.Begin(context.Background())
			if err != nil {
				t.Error(err)
			}
			body := messageBody("user", "And on it goes: "+strings.Repeat("a word and another, ", 400))
			m, _, err := tree.New(tx, tree.WithAppendHook(w)).Append(context.Background(), k.ConversationID, k.HeadID, tree.NewMessage{Body: body})
			go func() {
				// The job comes to wait for this transaction, or it doesn't wait and ends.
				const met = `select count(*) from (
					select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
					union all select 1 from river_job where state = 'completed') either`
				for n, deadline := 0, time.Now().Add(30*time.Second); n == 0 && err == nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
					err = pool.QueryRow(context.Background(), met).Scan(&n)
				}
				if err := errors.Join(err, tx.Commit(context.Background())); err != nil {
					t.Error(err)
				}
				appended <- m.ID
			}()
		})
	}
	store, worker := workerOn(t, pool, "a", summarize.Config{Observe: observe})
	w = worker
	id := conversation(t, store)
	head := talk(t, tree.New(pool), id, uuid.Nil, 30) // without the worker's knowing
	add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	large := <-appended
	eventually(t, "a compaction of the large message's branch", func() bool {
		return count(t, pool, "select count(*) from compactions where head_id = $1", large) > 0
	})
}
