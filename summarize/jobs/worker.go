package jobs

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/summarize"
)

// A Config sets up a Worker.
type Config struct {
	// ID names the server among the servers that share the database. It stays
	// the same over restarts, so that the server takes up at once the jobs that
	// it left. No two servers that run at once may share it.
	ID string
	// Concurrency is how many branches are compacted at once. 0 stands for 2,
	// or for the number of processors where no model is asked. A negative number
	// makes a server that only queues jobs.
	Concurrency int
	// PollOnly looks for jobs once a second. Without it LISTEN tells of new
	// jobs, which doesn't work through a pooler.
	PollOnly bool
	// Embeddings makes vectors of the messages that lack one. nil makes none, and
	// costs nothing.
	Embeddings *embed.Service
	Logger     *slog.Logger
	Registry   prometheus.Registerer // gets the metrics of the jobs; nil for none
}

// A Worker queues compactions, titles and embeddings, and runs them in the background. Its
// methods FollowCompactions and FollowEmbeddings queue them: followers of the feed of
// changes (package watch).
type Worker struct {
	service *summarize.Service
	pool    *pgxpool.Pool
	queries *db.Queries
	river   *river.Client[pgx.Tx]
	id      string
	works   bool
	log     *slog.Logger
	metrics *metrics
	slice   time.Duration // of a job; tests make it shorter

	standings  standingCache
	embeddings *embed.Service // nil for none
	indexLooks looks
}

// New returns a Worker. The database must have River's tables, which db.Migrate
// makes.
func New(pool *pgxpool.Pool, service *summarize.Service, cfg Config) (_ *Worker, err error) {
	defer db.Wrap(&err, "jobs.New(%s)", cfg.ID)
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 2
		if !service.AsksModels() {
			cfg.Concurrency = max(2, runtime.GOMAXPROCS(0))
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Worker{service: service, pool: pool, queries: db.New(pool), id: cfg.ID, works: cfg.Concurrency > 0, log: cfg.Logger, slice: jobSlice, embeddings: cfg.Embeddings}
	w.metrics = newMetrics(w.Count, cfg.Logger)
	config := &river.Config{ID: cfg.ID, Logger: slog.New(warnings{cfg.Logger.Handler()}), JobTimeout: w.timeout(), RescueStuckJobsAfter: w.timeout() + rescueSlack, MaxAttempts: jobAttempts, PollOnly: cfg.PollOnly}
	if w.works {
		workers := river.NewWorkers()
		river.AddWorker(workers, &runner{w: w})
		config.Workers, config.Middleware = workers, []rivertype.Middleware{&turns{w: w}}
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cfg.Concurrency}}
		river.AddWorker(workers, river.WorkFunc(w.title)) // always: River gives up jobs that its leader doesn't know
		if w.QueuesTitles() {
			config.Queues[titleQueue] = river.QueueConfig{MaxWorkers: titleWorkers}
		}
		if w.embeddings != nil {
			river.AddWorker(workers, &embedder{w: w})
			river.AddWorker(workers, &indexer{w: w})
			config.Queues[embeddingQueue] = river.QueueConfig{MaxWorkers: embeddingWorkers}
		}
	}
	if w.river, err = river.NewClient(riverpgxv5.New(pool), config); err != nil {
		return nil, err
	}
	if cfg.Registry != nil {
		err = cfg.Registry.Register(w.metrics)
	}
	return w, err
}

// timeout is how long a job may take: its slice, and a step after it.
func (w *Worker) timeout() time.Duration {
	return max(leastTimeout, jobSlice+w.service.StepTimeout())
}

// warnings leaves out what River says of its everyday life: compactions have a
// line of their own.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}
func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }

// Start takes up the jobs that this server left when it was killed. It then
// works until ctx ends or Stop is called.
func (w *Worker) Start(ctx context.Context) error {
	if !w.works {
		return nil
	}
	if err := w.queries.TakeUpJobs(ctx, w.id); err != nil {
		db.Wrap(&err, "jobs.Worker.Start(%s)", w.id)
		return err
	}
	return w.river.Start(ctx)
}

// Stop lets running jobs finish until ctx ends, and then cancels them. A
// cancelled job stays queued.
func (w *Worker) Stop(ctx context.Context) error {
	if !w.works {
		return nil
	}
	err := w.river.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = w.river.StopAndCancel(hard)
	}
	return err
}
