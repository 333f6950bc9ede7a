package jobs

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A tenant's compaction waits for one of another tenant, and not for all that the
// other tenant queued before.
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
		check.Eventually(t, fmt.Sprintf("%d jobs", queued), func() bool {
			return count(t, pool, "select count(*) from river_job where kind = 'compaction'") == queued
		})
		return id
	}
	due("many")
	<-asked // its worker is taken
	for range 5 {
		due("many")
	}
	few := due("few")
	close(answer)
	check.Eventually(t, "the jobs' end", func() bool {
		return count(t, pool, "select count(*) from river_job where state = 'completed'") == queued
	})
	if n := count(t, pool, `select count(*) from (select conversation_id, min(created_at) as at from compactions group by 1) c
		where at < (select min(created_at) from compactions where conversation_id = $1)`, few); n != 1 {
		t.Errorf("%d compactions of another tenant came first, want the one that ran", n)
	}
}
