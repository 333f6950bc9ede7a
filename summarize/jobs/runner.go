package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// runner works River's jobs off.
type runner struct {
	river.WorkerDefaults[job]
	w *Worker
}

// Work compacts the branches of the job, and the branches that grew from them
// meanwhile, until none has grown past its room: an append that finds a running
// job queues none. A failed compaction is an error, so that River waits longer
// each time before the next attempt. A failure of the database says nothing
// about the summarizer, so the job is then tried again as often as it takes.
func (r *runner) Work(ctx context.Context, j *river.Job[job]) (err error) {
	err = errPanicked
	defer func() { r.w.observe(outcomeOf(err, j.Attempt, j.MaxAttempts)) }()
	return r.work(ctx, j)
}

// errPanicked is of an attempt that never returned. River counts it as failed.
var errPanicked = errors.New("the job panicked")

// goesOn queues the job again at once. It is no attempt.
var goesOn = river.JobSnooze(0)

// A looked is a branch that a job has looked at.
type assessed struct {
	leaf tree.Message
	left summarize.Room
}

func (r *runner) work(ctx context.Context, j *river.Job[job]) error {
	t := task{
		Job: j, store: tree.New(r.w.pool).ForTenant(j.Args.TenantID), service: r.w.service.ForTenant(j.Args.TenantID),
		round: summarize.Round{Until: time.Now().Add(r.w.slice), NoTrial: j.Queue == digestQueue, Insists: j.Attempt > 1 || snoozed(j.Metadata)},
	}
	ctx = withCause(ctx, j.Metadata)
	for heads := append([]uuid.UUID{j.Args.HeadID}, branchesOf(j.Metadata)...); ; {
		t.done, t.resummarize = nil, nil
		failed, ended := t.compact(ctx, heads)
		if ended != nil {
			return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, ended)
		}
		rest, err := r.complete(ctx, &t, heads, failed)
		switch {
		case summarize.TroubleOf(ctx, err) == summarize.TroubleGone:
			return river.JobCancel(err) // the conversation is gone, and with it the job
		case err != nil:
			return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
		case t.away > 0:
			return river.JobSnooze(min(t.away, awayPause)) // it is the provider that failed: no attempt
		case failed != nil || len(rest) == 0:
			return failed
		}
		heads, t.round.Insists = rest, false
	}
}

// A task is a job under way.
type task struct {
	*river.Job[job]
	store       *tree.Store
	service     *summarize.Service
	round       summarize.Round
	done        []assessed    // in this round
	resummarize []assessed    // of those, the ones whose summary is to be made again
	away        time.Duration // a branch failed as no model answered: when to try again
}

// compact compacts the branches through heads. A branch that failed doesn't keep
// it from the next; that the database fails, or that the time is over, ends it.
func (t *task) compact(ctx context.Context, heads []uuid.UUID) (failed, ended error) {
	for _, head := range heads {
		p, err := t.branch(ctx, head)
		switch trouble := summarize.TroubleOf(ctx, err); {
		case trouble == summarize.TroubleGone: // and with it what was to be done
		case trouble != summarize.TroubleNone:
			return failed, err
		case p.More:
			return failed, goesOn
		case p.Failed != nil:
			failed, t.away = p.Failed, max(t.away, p.Away)
		}
	}
	return failed, nil
}

// branch compacts what the branch through head has grown to, unless it was
// looked at in this round.
func (t *task) branch(ctx context.Context, head uuid.UUID) (p summarize.Progress, err error) {
	leaf, err := t.store.NewestLeaf(ctx, t.Args.ConversationID, head)
	if err != nil || slices.ContainsFunc(t.done, func(l assessed) bool { return l.leaf.ID == leaf.ID }) {
		return p, err
	}
	if p, err = t.service.CompactDue(ctx, t.Args.ConversationID, leaf.ID, t.round); err != nil {
		return p, err
	}
	t.done = append(t.done, assessed{leaf, p.Room})
	waits, err := t.service.Waits(ctx, t.Args.ConversationID, leaf.ID)
	if waits {
		t.resummarize = append(t.resummarize, assessed{leaf, p.Room})
	}
	return p, err
}

// ended tells River what to do of a job that didn't come to its end. The longer
// the database has been failing, the longer the job waits: each time a model may
// be asked again for what could not be stored.
func (w *Worker) ended(ctx context.Context, j *rivertype.JobRow, conversationID uuid.UUID, err error) error {
	switch {
	case err == goesOn, ctx.Err() != nil:
		return err
	case summarize.TroubleOf(ctx, err) == summarize.TroubleRefused:
		return err // an attempt: the same again would fail the same
	}
	w.log.WarnContext(ctx, "a compaction is tried again, as the database failed", "conversation_id", conversationID, "error", err)
	return river.JobSnooze(min(max(databasePause, time.Since(j.CreatedAt)/4), longestPause))
}

// NextRetry returns the present time for a job whose server died. The job has
// waited already until River took it for stuck. For any other job River
// decides.
func (r *runner) NextRetry(j *river.Job[job]) time.Time {
	if j.AttemptedAt != nil && time.Since(*j.AttemptedAt) >= r.w.timeout()+rescueSlack {
		return time.Now()
	}
	return time.Time{}
}

// complete completes a job whose branches still end in the leaves that were
// looked at, or below them within the room that was left, and gives the heads of
// those that don't, and of branches of which the job was told meanwhile. It looks
// while it has the job's row locked: an append that is due either told the job
// before and is seen, or finds the job completed and queues the next. Of a job
// that has failed it only notes what is left to do.
func (r *runner) complete(ctx context.Context, t *task, tried []uuid.UUID, failed error) (rest []uuid.UUID, err error) {
	defer db.Wrap(&err, "jobs.complete(%s)", t.Args.ConversationID)
	rooms := map[uuid.UUID]summarize.Room{}
	err = pgx.BeginFunc(ctx, r.w.pool, func(tx pgx.Tx) error {
		queries, store := db.New(tx), tree.New(tx).ForTenant(t.Args.TenantID)
		metadata, err := queries.LockJob(ctx, t.ID)
		if err != nil {
			return err
		}
		if _, err := store.Conversation(ctx, t.Args.ConversationID); err != nil {
			return err
		}
		for _, l := range t.resummarize {
			if err := r.w.queueResummarizing(ctx, tx, resummarizing{t.Args.TenantID, t.Args.ConversationID, l.leaf.ID}, nil); err != nil {
				return err
			}
		}
		if rest, err = t.outgrown(ctx, store, rooms); err != nil {
			return err
		}
		for _, head := range branchesOf(metadata) {
			if !slices.Contains(tried, head) {
				rest = append(rest, head)
			}
		}
		if failed != nil {
			rest = append(rest, tried...) // which of them failed is no matter: to look again costs little
		}
		if len(rest) > 0 || failed != nil {
			return queries.LeaveBranches(ctx, db.LeaveBranchesParams{ID: t.ID, Heads: texts(rest)})
		}
		_, err = river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, t.Job)
		return err
	})
	if err != nil {
		return nil, err
	}
	for id, left := range rooms {
		r.w.quiet.set(t.Args.ConversationID, id, left, headroomAge)
	}
	return rest, nil
}

// outgrown gives the leaves of branches that have grown past the room that was
// left, and adds to rooms what the others have.
func (t *task) outgrown(ctx context.Context, store *tree.Store, rooms map[uuid.UUID]summarize.Room) (leaves []uuid.UUID, err error) {
	for _, l := range t.done {
		leaf, err := store.NewestLeaf(ctx, t.Args.ConversationID, l.leaf.ID)
		if errors.Is(err, fault.NotFound) {
			continue // pruned since
		}
		if err != nil {
			return nil, err
		}
		if left := l.left.Less(int(leaf.PathTokens-l.leaf.PathTokens), leaf.Depth-l.leaf.Depth); left.Some() {
			rooms[leaf.ID] = left
		} else if leaf.ID != l.leaf.ID {
			leaves = append(leaves, leaf.ID)
		}
	}
	return leaves, nil
}

func texts(ids []uuid.UUID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}
