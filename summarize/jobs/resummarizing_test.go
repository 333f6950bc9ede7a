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
	check.Eventually(t, "a job that waits for the model", func() bool {
		return count(t, pool, "select count(*) from river_job where kind = 'compaction' and (metadata ->> 'snoozes')::integer > 0") == 1
	})
	if made("fake") > 0 {
		t.Error("a model that is down wrote a summary")
	}
	down.Store(false)
	check.Eventually(t, "the model's summary", func() bool { return made("fake") > 0 })
	check.Eventually(t, "the jobs' end", func() bool { return count(t, pool, "select count(*) from river_job where finalized_at is null") == 0 })
	if n := count(t, pool, "select count(*) from river_job where state <> 'completed' or attempt <> 1"); n > 0 {
		t.Errorf("%d jobs failed, or needed another attempt", n)
	}
	s := service(t, store, cfg)
	if c := contextOf(t, s, id, head.ID); c.Summary.Model != "fake" || !c.Complete {
		t.Errorf("%+v", c.Summary)
	}
	if n := count(t, pool, "select count(*) from compactions where conversation_id = $1 and remade_id is not null and outcome <> 'saved'", id); n > 0 {
		t.Errorf("%d records of attempts that nobody answered", n)
	}
}

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
