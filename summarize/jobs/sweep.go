package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// sweep looks for branches that are due and have no job. On a distributed
// database an append commits on the conversation's node first, and its job after
// that on the coordinator; what ends between the two leaves the message alone. One
// server at a time sweeps.
type sweep struct{}

func (sweep) Kind() string { return "sweep" }

func (sweep) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: sweepQueue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: unfinished}}
}

const (
	sweepQueue = "sweep"
	sweepPause = 5 * time.Minute
	// sweepSlack is how much further back a sweep looks than the one before it
	// began: an append takes a while, and clocks differ.
	sweepSlack = 2 * time.Minute
	// sweepReach is how far the first sweep looks back. River forgets jobs after it.
	sweepReach = 24 * time.Hour
)

// sweeping has River sweep at its start and every few minutes.
func sweeping(config *river.Config, w *Worker) {
	river.AddWorker(config.Workers, &sweeper{w: w})
	config.Queues[sweepQueue] = river.QueueConfig{MaxWorkers: 1}
	config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(
		river.PeriodicInterval(sweepPause),
		func() (river.JobArgs, *river.InsertOpts) { return sweep{}, nil },
		&river.PeriodicJobOpts{RunOnStart: true}))
}

type sweeper struct {
	river.WorkerDefaults[sweep]
	w *Worker
}

// Work looks at what was said since the last sweep.
func (s *sweeper) Work(ctx context.Context, _ *river.Job[sweep]) (err error) {
	defer db.Wrap(&err, "jobs.sweep")
	last, err := s.w.queries.GetLastSweep(ctx)
	if err != nil {
		return err
	}
	since := last.Add(-sweepSlack)
	if oldest := time.Now().Add(-sweepReach); since.Before(oldest) {
		since = oldest
	}
	return s.w.sweep(ctx, since)
}

// sweep queues jobs for the branches that were touched since a time, where they
// are due. It does with each what an append does.
func (w *Worker) sweep(ctx context.Context, since time.Time) error {
	return tree.New(w.pool).Touched(ctx, since, func(s *tree.Store, leaf tree.Message) error {
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			_, err := w.Appended(db.WithTx(ctx, tx), tree.New(tx).ForTenant(s.TenantID()), leaf)
			return err
		})
		if summarize.TroubleOf(ctx, err) == summarize.TroubleGone {
			return nil
		}
		return err
	})
}
