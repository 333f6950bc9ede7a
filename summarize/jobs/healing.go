package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// healing asks for the summary of a branch to be made again by a model. It waits
// for as long as no model answers. A conversation has one at a time, which learns
// of the other branches; it stands beside the conversation's job, whose
// compactions must not wait for it.
type healing struct {
	TenantID       string    `json:"tenant_id" river:"unique"`
	ConversationID uuid.UUID `json:"conversation_id" river:"unique"`
	HeadID         uuid.UUID `json:"head_id"`
}

func (healing) Kind() string { return "healing" }

func (healing) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: healingQueue, MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// healingQueue has one worker of each server, so that compactions don't wait for
// summaries that have waited anyway.
const healingQueue = "healing"

// healer works such jobs off.
type healer struct {
	river.WorkerDefaults[healing]
	w *Worker
}

// Work makes the summaries of the job's branches again, one after the other, until
// it was told of no other. If models answer in vain, the attempt is on record, and
// the branch waits.
func (h *healer) Work(ctx context.Context, j *river.Job[healing]) (err error) {
	err = errPanicked
	defer func() { h.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	return h.work(ctx, j)
}

func (h *healer) work(ctx context.Context, j *river.Job[healing]) error {
	store, service := tree.New(h.w.pool).ForTenant(j.Args.TenantID), h.w.service.ForTenant(j.Args.TenantID)
	round := summarize.Round{Until: time.Now().Add(h.w.slice)}
	ctx = withCause(ctx, j.Metadata)
	heads := append([]uuid.UUID{j.Args.HeadID}, branchesOf(j.Metadata)...)
	for i := 0; i < len(heads); i++ {
		leaf, err := store.NewestLeaf(ctx, j.Args.ConversationID, heads[i])
		var p summarize.Progress
		if err == nil {
			p, err = service.Heal(ctx, j.Args.ConversationID, leaf.ID, round)
		}
		switch trouble := summarize.TroubleOf(ctx, err); {
		case trouble == summarize.TroubleGone: // and with it what was to be done
		case trouble != summarize.TroubleNone:
			return h.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
		case p.More:
			return goesOn
		case p.Failed != nil:
			return river.JobSnooze(min(max(p.Away, time.Since(j.CreatedAt)/4), longestPause))
		}
		if i == len(heads)-1 {
			told, err := h.complete(ctx, j, heads)
			if err != nil {
				return h.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
			}
			heads = append(heads, told...)
		}
	}
	return nil
}

// complete completes the job, unless it was told of branches since it began: it
// gives those. It looks while it has the job's row locked, as runner.complete does.
func (h *healer) complete(ctx context.Context, j *river.Job[healing], tried []uuid.UUID) (told []uuid.UUID, err error) {
	defer db.Wrap(&err, "jobs.healer.complete(%s)", j.Args.ConversationID)
	err = pgx.BeginFunc(ctx, h.w.pool, func(tx pgx.Tx) error {
		metadata, err := db.New(tx).LockJob(ctx, j.ID)
		if err != nil {
			return err
		}
		told = slices.DeleteFunc(branchesOf(metadata), func(head uuid.UUID) bool { return slices.Contains(tried, head) })
		if len(told) > 0 {
			return nil
		}
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j)
		return err
	})
	return told, err
}

// queueHealing inserts such a job in a transaction, or tells the one that there
// is of the branch.
func (w *Worker) queueHealing(ctx context.Context, tx pgx.Tx, j healing, tail []uuid.UUID) error {
	return w.insert(ctx, tx, j, j.HeadID, tail)
}
