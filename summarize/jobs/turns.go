package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/db"
)

// turnsTimeout bounds the statement that a job's end waits for.
const turnsTimeout = 2 * time.Second

// turns counts what came of each job, and has the tenants take turns at the workers:
// River's order, first come, first served, has one tenant wait for all jobs that another
// tenant queued before. It runs at the end of each job, before the job's worker is free
// for the next one.
type turns struct {
	river.MiddlewareDefaults
	w *Worker
}

// errPanicked is of an attempt that never returned. River counts it as failed.
var errPanicked = errors.New("the job panicked")

// Work works a job off, and then puts the jobs that wait in their order.
func (t *turns) Work(ctx context.Context, j *rivertype.JobRow, work func(context.Context) error) (err error) {
	err = errPanicked
	defer func() { t.w.metrics.attempts.WithLabelValues(outcomeOf(err, j.Attempt, j.MaxAttempts)).Inc() }()
	err = work(ctx)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnsTimeout)
	defer cancel()
	if err := t.w.queries.TakeTurns(within, db.TakeTurnsParams{Queue: j.Queue, EndedID: j.ID}); err != nil {
		t.w.log.DebugContext(ctx, "the jobs that wait were not put in their order", "error", err) // the next job's end does it
	}
	return err
}
