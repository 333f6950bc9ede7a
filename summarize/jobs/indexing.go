package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// indexing asks for pgvector's index over a tenant's vectors.
type indexing struct {
	TenantID string `json:"tenant_id" river:"unique"`
}

func (indexing) Kind() string { return "embedding_index" }

func (indexing) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: embeddingQueue, MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

const (
	// indexTimeout is how long an index may take: some minutes for a million vectors,
	// where the database has memory for it.
	indexTimeout = 6 * time.Hour
	// indexLook is how often a server looks whether a tenant's vectors have become so
	// many that they need an index.
	indexLook = time.Hour
)

// looks remembers when something was last looked at, by tenant.
type looks struct {
	mu sync.Mutex
	at map[string]time.Time
}

// due reports whether the tenant was not looked at within indexLook, and counts as a
// look.
func (l *looks) due(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at[tenant]) < indexLook {
		return false
	}
	if l.at == nil || len(l.at) >= 10_000 {
		l.at = map[string]time.Time{}
	}
	l.at[tenant] = time.Now()
	return true
}

// index queues the making of pgvector's index for a tenant that may need one. A pooler
// would not let a statement run for so long. A failure is logged: the vectors are
// there.
func (w *Worker) index(ctx context.Context, tenant string) {
	if db.Pooled(w.pool) || !w.indexLooks.due(tenant) {
		return
	}
	_, missing, err := w.missingIndex(ctx, tenant)
	if missing {
		_, err = w.river.Insert(ctx, indexing{tenant}, nil)
	}
	if err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "whether a tenant's vectors need an index could not be found out", "tenant_id", tenant, "error", err)
	}
}

// missingIndex is a tenant's index, and tells whether it is to be made: not where the
// tenant has few vectors.
func (w *Worker) missingIndex(ctx context.Context, tenant string) (index db.VectorIndex, missing bool, err error) {
	index = db.VectorIndex{TenantKey: db.TenantKey(tenant), Model: w.embeddings.Model()}
	dimensions, err := w.queries.GetEmbeddingSize(ctx, db.GetEmbeddingSizeParams{TenantKey: index.TenantKey, Model: index.Model, Beyond: tree.ManyEmbeddings})
	if errors.Is(err, pgx.ErrNoRows) {
		return index, false, nil
	}
	if err == nil {
		index.Dimensions = int(dimensions)
		missing, err = index.Missing(ctx, w.pool)
	}
	return index, missing, err
}

// indexer works such jobs off.
type indexer struct {
	river.WorkerDefaults[indexing]
	w *Worker
}

func (*indexer) Timeout(*river.Job[indexing]) time.Duration { return indexTimeout }

func (x *indexer) Work(ctx context.Context, j *river.Job[indexing]) error {
	index, missing, err := x.w.missingIndex(ctx, j.Args.TenantID)
	if missing {
		err = index.Create(ctx, x.w.pool)
	}
	if err != nil {
		x.w.log.WarnContext(ctx, "pgvector's index of a tenant's vectors could not be made", "tenant_id", j.Args.TenantID, "error", err)
	}
	return err
}
