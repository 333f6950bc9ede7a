package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/recall/embed"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// embedding asks for vectors of the messages of a conversation that lack one. One
// is under way per conversation. It ends with its row locked, after a last look: an
// append that finds it holds its row until the append's commit, so that the job
// sees the message, or else there is room for another job.
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

// embedder works such jobs off.
type embedder struct {
	river.WorkerDefaults[embedding]
	w *Worker
}

// Work embeds batch after batch until none lacks a vector. That the model fails is
// no attempt: the job waits, for as long as it takes.
func (e *embedder) Work(ctx context.Context, j *river.Job[embedding]) (err error) {
	err = errPanicked
	defer func() { e.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	return e.work(ctx, j)
}

func (e *embedder) work(ctx context.Context, j *river.Job[embedding]) error {
	store := tree.New(e.w.pool).ForTenant(j.Args.TenantID)
	for until := time.Now().Add(e.w.slice); ; {
		saved, left, err := e.w.embeddings.Step(ctx, store, j.Args.ConversationID)
		if err == nil && left == 0 {
			var done bool
			if done, err = e.complete(ctx, store, j); done {
				return nil
			}
		}
		switch {
		case errors.Is(err, fault.NotFound):
			return river.JobCancel(err) // the conversation is gone, and with it the job
		case err != nil:
			return e.w.embedLater(ctx, j, err)
		case left > 0 && saved == 0:
			return river.JobSnooze(databasePause) // each message was pruned or moved meanwhile
		case time.Now().After(until):
			return goesOn
		}
	}
}

// complete completes the job, unless a message came that lacks a vector.
func (e *embedder) complete(ctx context.Context, store *tree.Store, j *river.Job[embedding]) (done bool, err error) {
	defer db.Wrap(&err, "jobs.embedder.complete(%s)", j.Args.ConversationID)
	err = pgx.BeginFunc(ctx, e.w.pool, func(tx pgx.Tx) error {
		if _, err := db.New(tx).LockJob(ctx, j.ID); err != nil {
			return err
		}
		_, missing, err := tree.New(tx).ForTenant(store.TenantID()).Unembedded(ctx, j.Args.ConversationID, e.w.embeddings.Model(), 1)
		if err != nil || missing > 0 {
			return err
		}
		done = true
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j)
		return err
	})
	return done && err == nil, err
}

// embedLater tells River what to do of a job that couldn't embed.
func (w *Worker) embedLater(ctx context.Context, j *river.Job[embedding], err error) error {
	var spared *embed.SparedError
	var failed *llm.Error
	wait := min(max(databasePause, time.Since(j.CreatedAt)/4), longestPause)
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &spared):
		return river.JobSnooze(max(wait, spared.Left))
	case errors.As(err, &failed):
		wait = max(wait, min(failed.RetryAfter, longestPause))
	case summarize.TroubleOf(ctx, err) == summarize.TroubleRefused:
		return err // an attempt: the same again would fail the same
	}
	w.log.WarnContext(ctx, "messages are embedded later", "conversation_id", j.Args.ConversationID, "error", err)
	return river.JobSnooze(wait)
}

// queueEmbedding inserts such a job in a transaction, or holds the one that there
// is.
func (w *Worker) queueEmbedding(ctx context.Context, tx pgx.Tx, j embedding) error {
	for {
		inserted, err := w.river.InsertTx(ctx, tx, j, &river.InsertOpts{Metadata: causeOf(ctx)})
		if err != nil || !inserted.UniqueSkippedAsDuplicate {
			return err
		}
		held, err := db.New(tx).HoldJob(ctx, inserted.Job.ID)
		if err != nil || held > 0 {
			return err
		}
		// It ended between the two statements.
	}
}
