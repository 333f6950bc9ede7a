package jobs

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// outage is a model that is down until it is told otherwise.
func outage() (config summarize.Config, down *atomic.Bool) {
	down = new(atomic.Bool)
	down.Store(true)
	model := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		if down.Load() {
			return llm.Response{}, &llm.Error{Kind: llm.ErrUnavailable, Model: "fake"}
		}
		return llmtest.Response(written), nil
	}}
	return summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000}}}}, down
}

// A branch that outgrew its window has its digest at once, and the model's summary later, in one attempt.
func TestResummarizingJob(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	cfg, down := outage()
	store, _ := workerOn(t, pool, "one", cfg)
	id := conversation(t, store)
	plain := tree.New(pool)
	head := talk(t, plain, id, uuid.Nil, 60)
	head = talk(t, store, id, head.ID, 1)
	made := func(by string) int {
		return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary' and model = $2", id, by)
	}
	check.Eventually(t, "the digest", func() bool { return made(digest.Name) > 0 })
	untilCounts(t, pool, 1, "a job that waits for the model", "select count(*) from river_job where kind = 'compaction' and (metadata ->> 'snoozes')::integer > 0")
	check.That(t, made("fake") <= 0, "a model that is down wrote a summary")
	down.Store(false)
	check.Eventually(t, "the model's summary", func() bool { return made("fake") > 0 })
	untilCounts(t, pool, 0, "the jobs' end", "select count(*) from river_job where finalized_at is null")
	counts(t, pool, 0, "jobs that failed, or needed another attempt", "select count(*) from river_job where state <> 'completed' or attempt <> 1")
	s := service(t, store, cfg)
	c := contextOf(t, s, id, head.ID)
	check.That(t, c.Summary.Model == "fake" && c.Complete, "%+v", c.Summary)
	counts(t, pool, 0, "records of attempts that nobody answered", "select count(*) from compactions where conversation_id = $1 and remade_id is not null and outcome <> 'saved'", id)
}

// folded makes a conversation whose summary the digest wrote.
func folded(t *testing.T, store *tree.Store, cfg summarize.Config) uuid.UUID {
	t.Helper()
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 60)
	k, err := service(t, store, cfg).Compact(t.Context(), id, head.ID, summarize.TriggerReply, nil)
	check.Need(t, err == nil && k.Model == digest.Name, "%s by %q, %v", k.Outcome, k.Model, err)
	return id
}

// A server that starts makes the digest's summaries again, of any tenant.
func TestSweepResummarizes(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	cfg, down := outage()
	plain := tree.New(pool)
	ids := []uuid.UUID{folded(t, plain, cfg), folded(t, plain.ForTenant("another"), cfg)}
	down.Store(false)
	workerOn(t, pool, "one", cfg)
	for _, id := range ids {
		check.Eventually(t, "the model's summary", func() bool {
			return count(t, pool, "select count(*) from nodes where conversation_id = $1 and kind = 'summary' and model = 'fake'", id) > 0
		})
	}
}
