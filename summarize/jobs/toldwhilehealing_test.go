package jobs

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// A job that makes a summary again is told of another branch when it has made the
// summary: it comes to that branch, too, before it ends.
func TestToldWhileHealing(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	plain := tree.New(pool)
	id := conversation(t, plain)
	other := talk(t, plain, id, uuid.Nil, 4)
	var store *tree.Store
	var once sync.Once
	told := make(chan uuid.UUID, 1) // the other branch's summary
	cfg, down := outage()
	down.Store(false)
	cfg.Observe = func(k tree.Compaction) {
		if k.Trigger != string(summarize.TriggerHealing) {
			return
		}
		once.Do(func() {
			ctx := context.Background()
			summary, err := plain.AddSummary(ctx, id, tree.NewSummary{
				AnchorID: other.ID, Body: messageBody("user", "They spoke."), Range: tree.SummaryRange{LastSummarizedID: other.ParentID, Model: digest.Name},
			})
			if err == nil {
				_, _, err = store.Append(ctx, id, other.ID, tree.NewMessage{Body: messageBody("user", "Go on.")})
			}
			if err != nil {
				t.Error(err)
			}
			told <- summary.ID
		})
	}
	store, _ = workerOn(t, pool, "one", cfg)
	away, _ := outage()
	head := talk(t, plain, id, uuid.Nil, 60)
	if k, err := service(t, plain, away).Compact(t.Context(), id, head.ID, summarize.TriggerReply, nil); err != nil || k.Model != digest.Name {
		t.Fatalf("%s by %q, %v", k.Outcome, k.Model, err)
	}
	add(t, store, id, head.ID, `{"role":"user","content":"Go on."}`)
	summary := <-told
	eventually(t, "the jobs' end", func() bool { return count(t, pool, "select count(*) from river_job where finalized_at is null") == 0 })
	if n := count(t, pool, "select count(*) from compactions where conversation_id = $1 and remade_id = $2", id, summary); n != 1 {
		t.Errorf("the other branch's summary was made again %d times", n)
	}
}
