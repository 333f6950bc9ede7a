package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// embedding asks for vectors of the messages of a conversation that lack one. One
// is under way per conversation.
type embedding struct {
	TenantID       string    `json:"tenant_id" river:"unique"`
	ConversationID uuid.UUID `json:"conversation_id" river:"unique"`
}

func (embedding) Kind() string { return "embedding" }

func (embedding) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: embeddingQueue, MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// embeddingQueue has workers of its own, so that no compaction waits for vectors.
// Servers without an embedding model leave it alone.
const (
	embeddingQueue   = "embeddings"
	embeddingWorkers = 3
)

// Embeddings returns the name of the follower that FollowEmbeddings is, or "" if the
// Worker makes no vectors. Each model has its own, which begins with all
// conversations.
func (w *Worker) Embeddings() string {
	if w.embeddings == nil {
		return ""
	}
	return "embeddings " + w.embeddings.Model()
}

// FollowEmbeddings queues a job for each of the conversations in which messages came,
// and moves the places of the others.
func (w *Worker) FollowEmbeddings(ctx context.Context, behind []tree.Pending) (err error) {
	defer db.Wrap(&err, "jobs.Worker.FollowEmbeddings(%d conversations)", len(behind))
	return w.follow(ctx, w.Embeddings(), behind, func(p tree.Pending, g tree.Growth) (river.JobArgs, error) {
		if len(g.Branches) == 0 && !g.Reshaped {
			return nil, nil
		}
		return embedding{p.TenantID, p.ConversationID}, nil
	})
}

// embedder works such jobs off.
type embedder struct {
	river.WorkerDefaults[embedding]
	w *Worker
}

// Work embeds batch after batch until none lacks a vector. That the model fails is
// no attempt: the job waits, for as long as it takes.
func (e *embedder) Work(ctx context.Context, j *river.Job[embedding]) error {
	plain, follower := tree.New(e.w.pool), e.w.Embeddings()
	store := plain.ForTenant(j.Args.TenantID)
	for until := time.Now().Add(e.w.slice); ; {
		behind, grown, err := growthOf(ctx, plain, follower, j.Args.ConversationID)
		if err != nil {
			return e.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
		}
		place := int64(0) // of all messages
		if len(behind) > 0 && !grown.Forgot && !grown.Reshaped {
			place = behind[0].Place
		}
		for found := 1; found > 0; {
			var saved int
			saved, found, err = e.w.embeddings.Step(ctx, store, j.Args.ConversationID, place)
			switch {
			case err != nil:
				return e.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
			case found > 0 && saved == 0:
				return river.JobSnooze(databasePause) // each message was pruned or moved meanwhile
			case time.Now().After(until):
				return goesOn
			}
		}
		if done, err := complete(ctx, e.w, j, follower, j.Args.ConversationID, behind...); err != nil {
			return e.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
		} else if done {
			e.w.index(ctx, j.Args.TenantID)
			return nil
		}
	}
}
