package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// hundredth counts so few tokens that a text which no row holds is no too long answer.
type hundredth struct{}

func (hundredth) Count(text string) int { return len(text)/100 + 1 }

// A summary that can't be stored is a failure on record, not tried again before the branch grows.
func TestSummaryThatCannotBeStored(t *testing.T) {
	t.Parallel()
	check.Large(t)
	pool := dbtest.New(t, dbtest.MaxConns(10))
	model, calls := counting(strings.Repeat("Much was said. ", 80_000)) // 1.2 MB
	settings := withoutDigest(summarize.Defaults())
	settings.SummaryTargetTokens = 7000 // more than half of what the text counts
	store, _ := workerOn(t, pool, "one", summarize.Config{Settings: settings, Counter: hundredth{}, Summarizer: summarize.Cascade{Counter: hundredth{}, Models: []summarize.Model{{Model: model, Window: 1_000_000}}}})
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := tree.Message{}
	for i := range 46 {
		head = add(t, plain, id, head.ID, string(messageBody([]string{"user", "assistant"}[i%2], strings.Repeat("word ", 2000))))
	}
	head = add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	untilCounts(t, pool, 1, "the job's end", "select count(*) from river_job where state = 'completed'")
	ran, err := store.Summaries().Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(ran.Data) != 1 || calls.Load() != 1 {
		t.Fatalf("%d calls, %+v, %v", calls.Load(), ran.Data, err)
	}
	k := ran.Data[0]
	check.That(t, k.Outcome == tree.OutcomeFailed && strings.Contains(k.Reason, "can't be stored") &&
		k.TokensAfter == k.TokensBefore && k.SummaryID == uuid.Nil,
		"%s: %s, %d → %d tokens", k.Outcome, k.Reason, k.TokensBefore, k.TokensAfter)
	add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	handled(t, pool, Compactions)
	counts(t, pool, 1, "jobs, of a branch that has hardly grown", "select count(*) from river_job")
}

// A job whose time is over with steps left goes on at once, and that is no attempt.
func TestJobGoesOnInSteps(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := tree.Message{}
	for i := range 40 {
		text := fmt.Sprintf("m%dm ", i) + strings.Repeat("what there is to say of it ", 20)
		head = add(t, plain, id, head.ID, string(messageBody([]string{"user", "assistant"}[i%2], text)))
	}
	cfg := summarize.Config{Settings: withoutDigest(smallSettings())}
	cfg.Settings.MaxContextTokens, cfg.Settings.SummaryTargetTokens = 4000, 100
	model, _ := counting(written)
	cfg.Summarizer = summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 3000}}}
	w := check.Must(New(pool, service(t, tree.New(pool), cfg), Config{ID: "one"}))(t)
	w.slice = 0
	check.NoError(t, w.Start(t.Context()))
	t.Cleanup(func() { _ = w.Stop(context.Background()) })
	follow(t, pool, w, false)
	untilCounts(t, pool, 1, "the job's end", "select count(*) from river_job where state = 'completed'")
	steps := count(t, pool, "select count(*) from compactions where outcome = 'saved'")
	again := count(t, pool, "select (metadata ->> 'snoozes')::int from river_job")
	check.That(t, steps >= 2 && again >= steps-1, "%d steps, and the job went on %d times", steps, again)
	counts(t, pool, 1, "the attempt at which the job ended", "select attempt from river_job")
}

// A branch that comes due while another of its conversation is compacted is compacted as well.
func TestBranchDueBesideARunningJob(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	entered, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	model := &llmtest.Model{Answer: func(ctx context.Context, req llm.Request) (llm.Response, error) {
		if first.CompareAndSwap(false, true) {
			close(entered)
			<-release
		}
		return llmtest.Response(written), nil
	}}
	store, _ := workerOn(t, pool, "one", summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000}}}})
	plain := tree.New(pool)
	id := conversation(t, plain)
	fork := talk(t, plain, id, uuid.Nil, 1)
	a := talk(t, plain, id, fork.ID, 40)
	a = add(t, store, id, a.ID, `{"role":"user","content":"Go on."}`)
	<-entered // the job of branch a is in its model
	b := talk(t, store, id, fork.ID, 40)
	c := talk(t, plain, id, fork.ID, 40)
	close(release)
	untilCounts(t, pool, 1, "the job's end", "select count(*) from river_job where state = 'completed'")
	for name, head := range map[string]tree.Message{"a": a, "b": b, "c": c} {
		made := contextOf(t, service(t, store, summarize.Config{}), id, head.ID).Summary
		check.That(t, made != nil, "branch %s has no summary", name)
	}
	counts(t, pool, 1, "jobs for one conversation", "select count(*) from river_job")
}
