// Package jobs runs compactions in the background, through River. A [Worker]
// follows the feed of changes, and queues a job for each conversation in which a
// branch is due, or whose first answer came: it may get a better title. Servers that
// share a database share the work. Only this package and the migrations import River.
//
// Package summarize decides what a compaction is, when it is due and what its
// outcome is. Package jobs decides when a job is queued, tried again, handed on
// or given up.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// A job compacts in steps until its slice of time is over, and is queued again
// then, as long as there is more to do. So what bounds a job is one step, however
// many there are. A killed server's job is taken up by another one at most
// 6 minutes later, with models whose timeouts are a minute together: when River
// takes it for stuck, and half a minute between two looks.
const (
	jobSlice      = time.Minute
	leastTimeout  = 3 * time.Minute // of a job, with its last step
	rescueSlack   = 2 * time.Minute // after a job's timeout
	jobAttempts   = 6               // River waits attempt⁴ seconds between them: 1 s to 10 min
	databasePause = 5 * time.Second // after a failure of the database, which is no attempt
	longestPause  = 5 * time.Minute // when it has failed for long
)

// job asks for compactions of the branches of a conversation that are due. It looks
// at all branches that grew since the place of the follower. One is under way per
// conversation: while one waits or runs or backs off, another is not queued.
type job struct {
	TenantID       string    `json:"tenant_id" river:"unique"`
	ConversationID uuid.UUID `json:"conversation_id" river:"unique"`
	HeadID         uuid.UUID `json:"head_id"` // a branch that was due
}

func (job) Kind() string { return "compaction" }

func (job) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// unfinished are River's default states less completed: a job that is done must
// not keep the next one away.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
}

// snoozed tells whether a job was put off, by the database's failures or those of
// providers: it has waited then.
func snoozed(metadata []byte) bool {
	var read struct {
		Snoozes int `json:"snoozes"`
	}
	_ = json.Unmarshal(metadata, &read) // absent where it was not
	return read.Snoozes > 0
}

// What came of an attempt at a job.
const (
	completed = "completed"
	continued = "continued" // its time was over with steps left to do, and it goes on at once
	retried   = "retried"   // it failed, and will be tried again
	discarded = "discarded" // it failed for the last time
)

// outcomeOf tells what River will make of a job's error.
func outcomeOf(err error, attempt, most int) string {
	var snooze *river.JobSnoozeError
	switch {
	case err == nil:
		return completed
	case err == goesOn:
		return continued
	case attempt >= most && !errors.As(err, &snooze):
		return discarded
	}
	return retried
}

// complete completes a job if its follower is not behind in the conversation any
// more, and reports whether it did. With handled it first moves the follower's place.
//
// What is appended in the meantime is seen, or queues the next job: the job's row is
// changed before the place is compared, so whoever finds the job still there appended
// before the comparison, and whoever comes later waits for the commit and finds no job.
func complete[T river.JobArgs](ctx context.Context, w *Worker, j *river.Job[T], follower string, conversationID uuid.UUID, handled ...tree.Pending) (done bool, err error) {
	defer db.Wrap(&err, "jobs.complete(%s, %s)", follower, conversationID)
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j); err != nil {
			return err
		}
		store := tree.New(tx)
		if len(handled) > 0 {
			if _, err := store.Feed().Move(ctx, follower, handled...); err != nil {
				return err
			}
		}
		behind, err := store.Feed().Pending(ctx, follower, []uuid.UUID{conversationID})
		if err == nil && len(behind) > 0 {
			err = errBehind
		}
		return err
	})
	if errors.Is(err, errBehind) {
		return false, nil
	}
	return err == nil, err
}

var errBehind = errors.New("the conversation changed meanwhile")
