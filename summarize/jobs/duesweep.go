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

// dueSweep looks for branches that are due and have no job. On a distributed
// database an append commits on the conversation's node first, and its job after
// that on the coordinator; what ends between the two leaves the message alone. One
// server at a time sweeps.
type dueSweep struct{}

func (dueSweep) Kind() string { return "due_sweep" }

func (dueSweep) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: dueSweepQueue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByState: unfinished}}
}

const (
	dueSweepQueue = "due_sweep"
	dueSweepPause = 5 * time.Minute
	// dueSweepSlack is how much further back a sweep looks than the one before it
	// began: an append takes a while, and clocks differ.
	dueSweepSlack = 2 * time.Minute
	// dueSweepReach is how far the first sweep looks back. River forgets jobs after it.
	dueSweepReach = 24 * time.Hour
)

// sweepingDue has River sweep at its start and every few minutes.
func sweepingDue(config *river.Config, w *Worker) {
	river.AddWorker(config.Workers, &dueSweeper{w: w})
	config.Queues[dueSweepQueue] = river.QueueConfig{MaxWorkers: 1}
	config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(
		river.PeriodicInterval(dueSweepPause),
		func() (river.JobArgs, *river.InsertOpts) { return dueSweep{}, nil },
		&river.PeriodicJobOpts{RunOnStart: true}))
}

type dueSweeper struct {
	river.WorkerDefaults[dueSweep]
	w *Worker
}

// Work looks at what was said since the last sweep.
func (s *dueSweeper) Work(ctx context.Context, _ *river.Job[dueSweep]) (err error) {
	defer db.Wrap(&err, "jobs.dueSweep")
	last, err := s.w.queries.GetLastDueSweep(ctx)
	if err != nil {
		return err
	}
	since := last.Add(-dueSweepSlack)
	if oldest := time.Now().Add(-dueSweepReach); since.Before(oldest) {
		since = oldest
	}
	return s.w.sweepDue(ctx, since)
}

// sweepDue queues jobs for the branches that were touched since a time, where they
// are due. It does with each what an append does.
func (w *Worker) sweepDue(ctx context.Context, since time.Time) error {
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
