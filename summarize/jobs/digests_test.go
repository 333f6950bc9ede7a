package jobs

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// hungUp starts a server with one worker, which a model holds that was down and
// hangs now: the call tries whether the model is back. With end the model is well.
// The branch of the call fits its window.
func hungUp(t *testing.T, pool *pgxpool.Pool) (store *tree.Store, w *Worker, calls *atomic.Int32, fitting uuid.UUID, end func()) {
	t.Helper()
	calls = new(atomic.Int32)
	var hangs atomic.Bool
	hung, ended := make(chan struct{}, 100), make(chan struct{})
	model := &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		calls.Add(1)
		select {
		case <-ended:
			return llmtest.Response(written), nil
		default:
		}
		if !hangs.Load() {
			return llm.Response{}, &llm.Error{Kind: llm.ErrUnavailable, Model: "fake"}
		}
		hung <- struct{}{}
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return llmtest.Response(written), ctx.Err()
	}}
	cfg := summarize.Config{
		Settings:   smallSettings(),
		Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: model, Window: 100_000, Timeout: 1 << 40}}},
	}
	cfg.Settings.MaxContextTokens = 3000
	w = check.Must(New(pool, service(t, tree.New(pool), cfg), Config{ID: "one", Concurrency: 1}))(t)
	check.NoError(t, w.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whatever hangs still
		_ = w.Stop(ctx)
	})
	store = follow(t, pool, w, false)
	for range 3 {
		fitting = conversation(t, store)
		last := talk(t, tree.New(pool), fitting, uuid.Nil, 60)
		talk(t, store, fitting, last.ID, 1)
	}
	check.Eventually(t, "three failures", w.service.OnlyDigest)
	hangs.Store(true)
	<-hung
	return store, w, calls, fitting, func() { close(ended) }
}

// While a call that tries a model holds the only worker, branches that don't fit
// get their digests from other workers, and not one after the other.
func TestDigestsDoNotWaitForModels(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(20))
	store, w, calls, _, end := hungUp(t, pool)
	before := calls.Load()
	const branches = 5
	ids := make([]uuid.UUID, branches)
	last := make([]tree.Message, branches)
	for i := range ids {
		ids[i] = conversation(t, store)
		last[i] = talk(t, tree.New(pool), ids[i], uuid.Nil, 120)
	}
	// The first one's digest can't be stored meanwhile: its conversation is locked.
	tx := check.Must(pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	talk(t, store, ids[0], last[0].ID, 1)
	check.NoError(t, lock(t, tx, ids[0]))
	for i := range ids[1:] {
		talk(t, store, ids[i+1], last[i+1].ID, 1)
	}
	made := func() int {
		return count(t, pool, "select count(distinct conversation_id) from nodes where kind = 'summary' and model = $1", digest.Name)
	}
	check.Eventually(t, "the others' digests", func() bool { return made() == branches-1 })
	check.NoError(t, tx.Rollback(t.Context()))
	check.Eventually(t, "the first one's digest", func() bool { return made() == branches })
	if n := calls.Load(); n != before || !w.service.OnlyDigest() {
		t.Errorf("%d calls while one tried the model", n-before)
	}
	end()
}

func lock(t *testing.T, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(t.Context(), "select 1 from conversations where id = $1 for update", id)
	return err
}
