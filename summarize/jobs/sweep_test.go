package jobs

import (
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
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
