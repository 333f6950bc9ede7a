package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// betweenHook is called after the worker's own work, while the append's
// transaction is open.
type betweenHook struct {
	tree.AppendHook
	queued func(ctx context.Context, tx pgx.Tx) error
}

func (h betweenHook) Appended(ctx context.Context, s *tree.Store, m tree.Message) (committed func(), err error) {
	if committed, err = h.AppendHook.Appended(ctx, s, m); err != nil {
		return nil, err
	}
	return committed, h.queued(ctx, db.TxOf(ctx))
}

// An append over the trigger and its job become visible in one commit. What
// ends between the two, the server or its connection, leaves neither.
func TestJobIsQueuedInTheAppendsTransaction(t *testing.T) {
	t.Parallel()
	message := tree.NewMessage{Body: messageBody("user", "One more.")}
	killed := errors.New("the server was killed here")
	for how, appendTo := range map[string]func(s *tree.Store, id, parent uuid.UUID) (last uuid.UUID, err error){
		"a message": func(s *tree.Store, id, parent uuid.UUID) (uuid.UUID, error) {
			m, _, err := s.Append(context.Background(), id, parent, message)
			return m.ID, err
		},
		"a chain": func(s *tree.Store, id, parent uuid.UUID) (uuid.UUID, error) {
			chain, _, err := s.AppendChain(context.Background(), id, parent, []tree.NewMessage{message, message})
			if err != nil {
				return uuid.Nil, err
			}
			return chain[1].ID, nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			plain := tree.New(pool)
			id := conversation(t, plain)
			head := talk(t, plain, id, uuid.Nil, 40).ID
			messages := count(t, pool, "select count(*) from nodes")
			added := map[string]int{"a message": 1, "a chain": 2}[how]
			state := func(when string, wantMessages, wantJobs int) {
				t.Helper()
				gotMessages := count(t, pool, "select count(*) from nodes") - messages
				if gotJobs := count(t, pool, "select count(*) from river_job"); gotMessages != wantMessages || gotJobs != wantJobs {
					t.Errorf("%s there are %d new messages and %d jobs, want %d and %d", when, gotMessages, gotJobs, wantMessages, wantJobs)
				}
			}
			over := func(queued func(context.Context, pgx.Tx) error) *tree.Store {
				w, err := New(pool, service(t, plain, summarize.Config{}), Config{ID: "queues only", Concurrency: -1})
				if err != nil {
					t.Fatal(err)
				}
				return tree.New(pool, tree.WithAppendHook(betweenHook{w, queued}))
			}

			failing := over(func(context.Context, pgx.Tx) error { state("before the server is killed", 0, 0); return killed })
			if _, err := appendTo(failing, id, head); !errors.Is(err, killed) {
				t.Errorf("the append gives %v", err)
			}
			state("after the server was killed between the two", 0, 0)

			cut := over(func(_ context.Context, tx pgx.Tx) error { return terminate(pool, tx) })
			if _, err := appendTo(cut, id, head); err == nil {
				t.Error("an append whose connection ended before its commit was acknowledged")
			}
			state("after the connection ended between the two", 0, 0)

			reached := 0
			last, err := appendTo(over(func(context.Context, pgx.Tx) error { reached++; state("before the commit", 0, 0); return nil }), id, head)
			if err != nil || reached != 1 {
				t.Fatalf("%v, and the hook was called %d times", err, reached)
			}
			state("after the append", added, 1)
			if n := count(t, pool, "select count(*) from river_job where args ->> 'head_id' = $1", last.String()); n != 1 {
				t.Errorf("%d jobs name the appended message as their head", n)
			}
		})
	}
}

// terminate ends a transaction's connection from outside, and waits until
// Postgres has let go of it.
func terminate(pool *pgxpool.Pool, tx pgx.Tx) error {
	_, err := pool.Exec(context.Background(), "select pg_terminate_backend($1, 30000)", tx.Conn().PgConn().PID())
	return err
}
