package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
)

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
