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

// resummarizing is a job that makes the summary of a branch again by a model. It
// waits as long as no model answers. A conversation has one at a time, which learns
// of the other branches; it stands beside the conversation's job, whose
// compactions must not wait for it.
type resummarizing struct {
	TenantID       string    `json:"tenant_id" river:"unique"`
	ConversationID uuid.UUID `json:"conversation_id" river:"unique"`
	HeadID         uuid.UUID `json:"head_id"`
}

func (resummarizing) Kind() string { return "resummarizing" }

func (resummarizing) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: resummarizingQueue, MaxAttempts: jobAttempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}}
}

// resummarizingQueue has one worker of each server, so that compactions don't wait for
// summaries that have waited anyway.
const resummarizingQueue = "resummarizing"

// resummarizer works such jobs off.
type resummarizer struct {
	river.WorkerDefaults[resummarizing]
	w *Worker
}

// Work makes the summaries of the job's branches again, one after the other, until
// it was told of no other. If models answer in vain, the attempt is on record, and
// the branch waits.
func (h *resummarizer) Work(ctx context.Context, j *river.Job[resummarizing]) (err error) {
	err = errPanicked
	defer func() { h.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	return h.work(ctx, j)
}

func (h *resummarizer) work(ctx context.Context, j *river.Job[resummarizing]) error {
	store, service := tree.New(h.w.pool).ForTenant(j.Args.TenantID), h.w.service.ForTenant(j.Args.TenantID)
	round := summarize.Round{Until: time.Now().Add(h.w.slice)}
	ctx = withCause(ctx, j.Metadata)
	heads := append([]uuid.UUID{j.Args.HeadID}, branchesOf(j.Metadata)...)
	for i := 0; i < len(heads); i++ {
		leaf, err := store.NewestLeaf(ctx, j.Args.ConversationID, heads[i])
		var p summarize.Progress
		if err == nil {
			p, err = service.Resummarize(ctx, j.Args.ConversationID, leaf.ID, round)
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
func (h *resummarizer) complete(ctx context.Context, j *river.Job[resummarizing], tried []uuid.UUID) (told []uuid.UUID, err error) {
	defer db.Wrap(&err, "jobs.resummarizer.complete(%s)", j.Args.ConversationID)
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

// queueResummarizing inserts such a job in a transaction, or tells the one that there
// is of the branch.
func (w *Worker) queueResummarizing(ctx context.Context, tx pgx.Tx, j resummarizing, tail []uuid.UUID) error {
	return w.insert(ctx, tx, j, j.HeadID, tail)
}
