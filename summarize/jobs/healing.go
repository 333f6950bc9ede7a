package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

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

// Work makes the summaries of the job's branches again, one after the other. If
// models answer in vain, the attempt is on record, and the branch waits.
func (h *healer) Work(ctx context.Context, j *river.Job[healing]) (err error) {
	err = errPanicked
	defer func() { h.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	return h.work(ctx, j)
}

func (h *healer) work(ctx context.Context, j *river.Job[healing]) error {
	store, service := tree.New(h.w.pool).ForTenant(j.Args.TenantID), h.w.service.ForTenant(j.Args.TenantID)
	round := summarize.Round{Until: time.Now().Add(h.w.slice)}
	ctx = withCause(ctx, j.Metadata)
	for _, head := range append([]uuid.UUID{j.Args.HeadID}, branchesOf(j.Metadata)...) {
		leaf, err := store.NewestLeaf(ctx, j.Args.ConversationID, head)
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
	}
	return nil
}

// queueHealing inserts such a job in a transaction, or tells the one that there
// is of the branch.
func (w *Worker) queueHealing(ctx context.Context, tx pgx.Tx, j healing, tail []uuid.UUID) error {
	return w.insert(ctx, tx, j, j.HeadID, tail)
}
