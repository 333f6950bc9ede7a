package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// embeddingSweep queues an embedding job for every conversation with messages that lack a
// vector of the model: those that were there before the model was configured or
// changed, that were imported, or whose job was given up. There is one such job in
// a database. It never ends: it looks once an hour, and when a server starts.
type embeddingSweep struct{}

func (embeddingSweep) Kind() string { return "embedding_sweep" }

func (embeddingSweep) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: embeddingQueue, MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByState: unfinished}}
}

const (
	embeddingSweepEvery = time.Hour
	embeddingSweepPage  = 1000 // conversations that are looked at by one statement
	embeddingSweepMost  = 1000 // jobs that are queued before some have been worked off
	embeddingSweepPause = 10 * time.Second
)

// embeddingSweeper works such jobs off.
type embeddingSweeper struct {
	river.WorkerDefaults[embeddingSweep]
	w *Worker
}

func (s *embeddingSweeper) Work(ctx context.Context, j *river.Job[embeddingSweep]) (err error) {
	err = errPanicked
	defer func() { s.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	pause, err := s.sweep(ctx)
	if err != nil && ctx.Err() == nil {
		s.w.log.WarnContext(ctx, "conversations that lack vectors are looked for later", "error", err)
		pause, err = databasePause, nil
	}
	if err != nil {
		return err
	}
	return river.JobSnooze(pause)
}

func (s *embeddingSweeper) sweep(ctx context.Context) (pause time.Duration, err error) {
	defer db.Wrap(&err, "jobs.sweep")
	messages := map[string]int64{} // by tenant
	queued := 0
	for after := (pgtype.UUID{Valid: true}); ; {
		page, err := s.w.queries.ListConversationsToEmbed(ctx, db.ListConversationsToEmbedParams{Model: s.w.embeddings.Model(), AfterID: after, RowLimit: embeddingSweepPage})
		if err != nil {
			return 0, err
		}
		for _, c := range page {
			messages[c.TenantID] += int64(c.MessageCount)
			if !c.Lacks {
				continue
			}
			if queued == embeddingSweepMost {
				return embeddingSweepPause, nil
			}
			queued++
			if err := pgx.BeginFunc(ctx, s.w.pool, func(tx pgx.Tx) error {
				return s.w.queueEmbedding(ctx, tx, embedding{c.TenantID, uuid.UUID(c.ID.Bytes)})
			}); err != nil {
				return 0, err
			}
		}
		if len(page) < embeddingSweepPage {
			break
		}
		after = page[len(page)-1].ID
	}
	return embeddingSweepEvery, s.index(ctx, messages)
}

// index queues the making of pgvector's index for the tenants that may need one.
// A pooler would not let a statement run for so long.
func (s *embeddingSweeper) index(ctx context.Context, messages map[string]int64) error {
	for tenant, n := range messages {
		if n <= tree.ManyEmbeddings || db.Pooled(s.w.pool) {
			continue
		}
		index, err := s.w.vectorIndex(ctx, tenant)
		if err != nil {
			return err
		}
		if able, err := index.Missing(ctx, s.w.pool); err != nil {
			return err
		} else if !able {
			continue
		}
		if _, err := s.w.river.Insert(ctx, indexing{tenant}, nil); err != nil {
			return err
		}
	}
	return nil
}

// vectorIndex is a tenant's index; of no dimensions where the tenant has too few
// vectors for one.
func (w *Worker) vectorIndex(ctx context.Context, tenant string) (db.VectorIndex, error) {
	index := db.VectorIndex{TenantKey: db.TenantKey(tenant), Model: w.embeddings.Model()}
	dimensions, err := w.queries.GetEmbeddingSize(ctx, db.GetEmbeddingSizeParams{TenantKey: index.TenantKey, Model: index.Model, Beyond: tree.ManyEmbeddings})
	index.Dimensions = int(dimensions)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return index, err
}

// startSweep makes the database's sweep run now.
func (w *Worker) startSweep(ctx context.Context) error {
	inserted, err := w.river.Insert(ctx, embeddingSweep{}, nil)
	if err != nil || !inserted.UniqueSkippedAsDuplicate {
		return err
	}
	_, err = w.river.JobRetry(ctx, inserted.Job.ID) // one that runs already goes on
	return err
}

// indexing asks for pgvector's index over a tenant's vectors.
type indexing struct {
	TenantID string `json:"tenant_id" river:"unique"`
}

func (indexing) Kind() string { return "embedding_index" }

func (indexing) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: embeddingQueue, MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// indexTimeout is how long an index may take: some minutes for a million vectors,
// where the database has memory for it.
const indexTimeout = 6 * time.Hour

// indexer works such jobs off.
type indexer struct {
	river.WorkerDefaults[indexing]
	w *Worker
}

func (*indexer) Timeout(*river.Job[indexing]) time.Duration { return indexTimeout }

func (x *indexer) Work(ctx context.Context, j *river.Job[indexing]) (err error) {
	err = errPanicked
	defer func() { x.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	index, err := x.w.vectorIndex(ctx, j.Args.TenantID)
	if err == nil {
		var able bool
		if able, err = index.Missing(ctx, x.w.pool); err == nil && able {
			err = index.Create(ctx, x.w.pool)
		}
	}
	if err != nil {
		x.w.log.WarnContext(ctx, "pgvector's index of a tenant's vectors could not be made", "tenant_id", j.Args.TenantID, "error", err)
	}
	return err
}
