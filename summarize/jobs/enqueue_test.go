package jobs

import (
	"context"
	"encoding/json"
	"errors"
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

// One look at a branch is enough for all that is appended to it within its
// room: below what was appended, and beside it.
func TestOneLookIsEnough(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	plain := tree.New(pool)
	id := conversation(t, plain)
	head := talk(t, plain, id, uuid.Nil, 2)
	store, looks := queueOn(t, pool)
	body := json.RawMessage(`{"role":"user","content":"And then?"}`)
	for range 3 {
		m, _, err := store.Append(t.Context(), id, head.ID, tree.NewMessage{Body: body})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := store.Append(t.Context(), id, m.ID, tree.NewMessage{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	if looks.n != 1 {
		t.Errorf("%d looks for six appends, want 1", looks.n)
	}
}

// queueOn gives a store whose appends queue jobs that nobody works off, and
// counts what they look at.
func queueOn(t *testing.T, pool *pgxpool.Pool) (*tree.Store, *counted) {
	t.Helper()
	w, err := New(pool, service(t, tree.New(pool), summarize.Config{}), Config{ID: "queues only", Concurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	looks := &counted{AppendHook: w}
	return tree.New(pool, tree.WithAppendHook(looks)), looks
}

type counted struct {
	tree.AppendHook
	n int
}

func (c *counted) Wants(conversationID, parentID uuid.UUID, tokens, messages int) bool {
	wants := c.AppendHook.Wants(conversationID, parentID, tokens, messages)
	if wants {
		c.n++
	}
	return wants
}

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
