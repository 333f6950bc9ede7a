package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// workerOn starts a server's worker and gives the store that appends through it.
func workerOn(t *testing.T, pool *pgxpool.Pool, id string, cfg summarize.Config) (*tree.Store, *Worker) {
	t.Helper()
	w := check.Must(New(pool, service(t, tree.New(pool), cfg), Config{ID: id}))(t)
	check.NoError(t, w.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			t.Errorf("stopping %s: %v", id, err)
		}
	})
	return follow(t, pool, w, false), w
}

// An append over the trigger queues a job with it, and a worker compacts.
func TestWorkerCompacts(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	store, _ := workerOn(t, pool, "one", summarize.Config{})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 8)
	handled(t, pool, Compactions)
	counts(t, pool, 0, "jobs below the trigger", "select count(*) from river_job")
	for range 10 {
		head = talk(t, store, id, head.ID, 3)
	}
	handled(t, pool, Compactions) // else the jobs of an earlier append may have ended while the last has none yet
	check.Eventually(t, "the jobs' end", func() bool {
		return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary'", id) > 0 &&
			count(t, pool, "select count(*) from river_job where state <> 'completed'") == 0
	})
	c := contextOf(t, service(t, store, summarize.Config{}), id, head.ID)
	check.That(t, c.Summary != nil && c.Complete && c.Usage.ContextTokens <= smallSettings().Budget().Trigger, "after all jobs the head's context has summary %v, complete %t, %+v", c.Summary, c.Complete, c.Usage)
	// A chain counts as well, and so does another tenant's conversation.
	other := store.ForTenant("other")
	theirs := conversation(t, other)
	var chain []tree.NewMessage
	for range 80 {
		chain = append(chain, tree.Text(tree.RoleUser, "One of many messages that come all at once, as an import of a transcript does."))
	}
	check.Must(other.AppendChain(t.Context(), theirs, uuid.Nil, chain))(t)
	check.Eventually(t, "the other tenant's summary", func() bool {
		return count(t, pool, "select count(*) from compactions where conversation_id = $1 and outcome = 'saved'", theirs) > 0
	})
}

// A killed server takes its job up when it starts, and its dead life comes to nothing.
func TestRestartTakesJobsUp(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(12))
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := talk(t, plain, id, uuid.Nil, 40)
	queue := check.Must(New(pool, service(t, plain, summarize.Config{}), Config{ID: "queues only", Concurrency: -1}))(t)
	talk(t, plain, id, head.ID, 1)
	check.NoError(t, queue.FollowCompactions(t.Context(), []tree.Pending{{TenantID: tree.DefaultTenant, ConversationID: id, Sequence: 1}}))
	// As a kill -9 leaves it: running, by a server that is no more.
	check.Must(pool.Exec(t.Context(), "update river_job set state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{other,killed}'"))(t)
	workerOn(t, pool, "another", summarize.Config{})
	workerOn(t, pool, "killed", summarize.Config{})
	untilCounts(t, pool, 1, "the job to be done", "select count(*) from river_job where state = 'completed'")
	counts(t, pool, 1, "summaries", "select count(*) from nodes where conversation_id = $1 and kind = 'summary'", id)
	counts(t, pool, 1, "the attempt at which the job ended", "select attempt from river_job")
}

// A failing conversation is tried less and less often, and no other job is queued for it.
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
	untilCounts(t, pool, 1, "a failure", "select count(*) from river_job where state = 'retryable'")
	talk(t, store, id, head.ID, 20)
	counts(t, pool, 1, "jobs, with the one that backs off", "select count(*) from river_job")
	check.That(t, calls.Load() <= 3, "the model was called %d times", calls.Load())
}

// A failure of the database uses up no attempt, and the job doesn't back off.
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
	untilCounts(t, pool, 1, "a failure", "select count(*) from river_job where metadata ->> 'snoozes' = '1'")
	check.Must(pool.Exec(t.Context(), "alter table compactions_away rename to compactions"))(t)
	untilCounts(t, pool, 1, "the job's end", "select count(*) from river_job where state = 'completed'")
	counts(t, pool, 1, "the attempt at which the job ended", "select attempt from river_job")
	check.That(t, count(t, pool, "select count(*) from nodes where kind = 'summary'") != 0, "there is no summary")
}

// Two servers share the work, and leave one summary per anchor, however their jobs meet.
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
		check.Eventually(t, "every conversation's summary", func() bool {
			return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary'", id) > 0
		})
	}
	counts(t, pool, 0, "anchors with two summaries", "select count(*) from (select 1 from nodes where kind = 'summary' group by conversation_id, parent_id having count(*) > 1) twice")
	check.That(t, by[0].Load() != 0 || by[1].Load() != 0, "no server worked")
}

// A reply's first answer gets a title, also if its server was killed before it followed it.
func TestTitleOfAnAnswerThatWasLeft(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	killed := tree.New(pool).ForTenant("another")
	for _, metadata := range []string{`{"reply":{"model":"wood"}}`, `{}`} { // the second is a client's own
		answer := tree.NewMessage{Message: chat.Read(messageBody("assistant", "A wood.")), Metadata: []byte(metadata)}
		check.Must(killed.AppendChain(t.Context(), conversation(t, killed), uuid.Nil, []tree.NewMessage{tree.Text(tree.RoleUser, "What is a coppice?"), answer}))(t)
	}
	writer, _ := counting("Woods")
	workerOn(t, pool, "one", summarize.Config{Titles: summarize.TitlesModel, Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: writer, Window: 32_000}}}})
	untilCounts(t, pool, 1, "the title", "select count(*) from conversations where title = 'Woods'")
	untilCounts(t, pool, 2, "the follower", "select count(*) from follower_places")
	counts(t, pool, 1, "jobs", "select count(*) from river_job")
}

// What is appended after a job's last look at the branch is seen before the job ends.
func TestAppendWhileAJobEnds(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	var once sync.Once
	large := make(chan uuid.UUID, 1)
	observe := func(k tree.Compaction) {
		once.Do(func() {
			body := messageBody("user", "And on it goes: "+strings.Repeat("a word and another, ", 400))
			m, err := tree.New(pool).Append(context.Background(), k.ConversationID, k.HeadID, tree.NewMessage{Message: chat.Read(body)})
			if err != nil {
				t.Error(err)
			}
			large <- m.ID
		})
	}
	store, _ := workerOn(t, pool, "a", summarize.Config{Observe: observe})
	id := conversation(t, store)
	head := talk(t, tree.New(pool), id, uuid.Nil, 30) // without the worker's knowing
	add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	grown := <-large
	check.Eventually(t, "a compaction of the large message's branch", func() bool {
		return count(t, pool, "select count(*) from compactions where head_id = $1", grown) > 0
	})
	handled(t, pool, Compactions)
	counts(t, pool, 1, "jobs", "select count(*) from river_job")
}

// What a caller's own transaction appended is compacted, on any branch that is due.
func TestFollowerFindsWhatNobodyTold(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	w := check.Must(New(pool, service(t, tree.New(pool), summarize.Config{}), Config{ID: t.Name(), Concurrency: -1}))(t)
	follow(t, pool, w, true)
	tx := check.Must(pool.Begin(t.Context()))(t)
	theirs := tree.New(tx).ForTenant("acme")
	due, side, short := conversation(t, theirs), conversation(t, theirs), conversation(t, theirs)
	talk(t, theirs, due, uuid.Nil, 40)
	head := talk(t, theirs, side, uuid.Nil, 40)
	add(t, theirs, side, uuid.Nil, `{"role":"user","content":"The newest branch, which is short."}`)
	talk(t, theirs, short, uuid.Nil, 1)
	check.NoError(t, tx.Commit(t.Context()))
	const queued = "select count(*) from river_job where kind = 'compaction' and args ->> 'tenant_id' = 'acme' and args ->> 'conversation_id' = $1"
	check.Eventually(t, "the follower", func() bool {
		return count(t, pool, "select count(*) from follower_places where conversation_id = $1", short) == 1 &&
			count(t, pool, queued, due.String()) == 1 && count(t, pool, queued+" and args ->> 'head_id' = $2", side.String(), head.ID.String()) == 1
	})
	counts(t, pool, 2, "jobs", "select count(*) from river_job")
}

// A summary that another server undoes makes its branch due again, whose context was known as small.
func TestUndoneSummaryMakesItsBranchDue(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	store, _ := workerOn(t, pool, "one", summarize.Config{})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 40)
	handled(t, pool, Compactions)
	head = add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	handled(t, pool, Compactions)
	another := tree.New(pool)
	made, err := another.Summaries().All(t.Context(), id)
	check.Need(t, err == nil && len(made) == 1, "%d summaries, %v", len(made), err)
	check.Must(another.Prune(t.Context(), id, made[0].ID))(t)
	add(t, store, id, head.ID, `{"role":"assistant","content":"So be it."}`)
	untilCounts(t, pool, 2, "the next summary", "select count(*) from compactions where outcome = 'saved'")
}

// A tenant's compaction waits for one of another tenant, and not for all that it queued.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	model := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		asked <- struct{}{}
		<-answer
		return llmtest.Response(written), nil
	}}
	w := check.Must(New(pool, service(t, tree.New(pool), summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000}}}}), Config{ID: "one", Concurrency: 1}))(t)
	check.NoError(t, w.Start(t.Context()))
	t.Cleanup(func() { w.Stop(context.Background()) })
	store := follow(t, pool, w, false)
	queued := 0
	due := func(tenant string) uuid.UUID {
		s := store.ForTenant(tenant)
		id := conversation(t, s)
		talk(t, s, id, uuid.Nil, 40)
		queued++
		untilCounts(t, pool, queued, fmt.Sprintf("%d jobs", queued), "select count(*) from river_job where kind = 'compaction'")
		return id
	}
	due("many")
	<-asked // its worker is taken
	for range 5 {
		due("many")
	}
	few := due("few")
	close(answer)
	untilCounts(t, pool, queued, "the jobs' end", "select count(*) from river_job where state = 'completed'")
	n := count(t, pool, `select count(*) from (select conversation_id, min(created_at) as at from compactions group by 1) c
		where at < (select min(created_at) from compactions where conversation_id = $1)`, few)
	check.That(t, n == 1, "%d compactions of another tenant came first, want the one that ran", n)
}
