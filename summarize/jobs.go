package summarize

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
)

// Jobs are the background jobs of a database that aren't done, of all servers
// that share it.
type Jobs struct {
	Queued   int64 // wait for a worker
	Retrying int64 // failed, and wait for their next attempt
	Running  int64

	OldestQueued  time.Duration // how long the first job that is due has been waiting; 0 where none is
	OldestRunning time.Duration // how long the longest one has been running; 0 where none is
}

// Jobs counts the jobs that aren't done. It costs one query, which reads these
// jobs and no others.
func (w *Worker) Jobs(ctx context.Context) (j Jobs, err error) {
	var queued, running pgtype.Interval
	err = w.pool.QueryRow(ctx, countJobs).Scan(&j.Queued, &j.Retrying, &j.Running, &queued, &running)
	if err != nil {
		db.Wrap(&err, "summarize.Worker.Jobs")
		return Jobs{}, err
	}
	j.OldestQueued, j.OldestRunning = durationOf(queued), durationOf(running)
	return j, nil
}

func durationOf(i pgtype.Interval) time.Duration {
	return max(0, time.Duration(i.Microseconds)*time.Microsecond+time.Duration(i.Days)*24*time.Hour)
}

// countJobs names the states one by one, for River's index on them. A job whose
// next attempt is due counts as waiting since then, also while no server is
// there to queue it again.
const countJobs = `
select count(*) filter (where state in ('available', 'pending', 'scheduled')),
       count(*) filter (where state = 'retryable'),
       count(*) filter (where state = 'running'),
       coalesce(now() - min(scheduled_at) filter (where state <> 'running' and scheduled_at <= now()), '0'),
       coalesce(now() - min(attempted_at) filter (where state = 'running'), '0')
from river_job
where kind = 'compaction' and state in ('available', 'pending', 'scheduled', 'retryable', 'running')`

// JobOutcome is what came of one attempt at a background job.
type JobOutcome string

// Outcomes of an attempt.
const (
	JobCompleted JobOutcome = "completed"
	JobContinued JobOutcome = "continued" // its time was over with steps left to do, and it goes on at once
	JobRetried   JobOutcome = "retried"   // it failed, and will be tried again
	JobDiscarded JobOutcome = "discarded" // it failed for the last time
	JobCanceled  JobOutcome = "canceled"  // its branch is gone
)

// JobOutcomes lists them all.
func JobOutcomes() []JobOutcome {
	return []JobOutcome{JobCompleted, JobContinued, JobRetried, JobDiscarded, JobCanceled}
}

// outcomeOf tells what River will make of a job's error.
func outcomeOf(err error, attempt, most int) JobOutcome {
	var cancel *river.JobCancelError
	var snooze *river.JobSnoozeError
	switch {
	case err == nil:
		return JobCompleted
	case err == goesOn:
		return JobContinued
	case errors.As(err, &cancel):
		return JobCanceled
	case errors.As(err, &snooze):
		return JobRetried
	case attempt >= most:
		return JobDiscarded
	}
	return JobRetried
}
