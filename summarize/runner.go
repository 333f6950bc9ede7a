package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// runner works River's jobs off.
type runner struct {
	river.WorkerDefaults[job]
	w *Worker
}

// Work compacts the branches that the job knows of, and what they have grown to,
// until none has grown past its room meanwhile: appends that find a job under
// way queue none. A failed compaction is an error, so that River waits longer
// each time before the next attempt. Where the database fails, nothing is known
// of the summarizer, so the job is tried again, and as often as it takes.
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
type looked struct {
	leaf tree.Message
	left room
}

func (r *runner) work(ctx context.Context, j *river.Job[job]) error {
	o := order{trigger: TriggerAppend, insists: j.Attempt > 1, until: time.Now().Add(r.w.slice)}
	service := r.w.service.ForTenant(j.Args.TenantID)
	ctx = withCause(ctx, j.Metadata)
	heads := append([]uuid.UUID{j.Args.HeadID}, branchesOf(j.Metadata)...)
	var done []looked
	for {
		var tried []uuid.UUID
		var failed, ended error
		for _, head := range heads {
			leaf, last, err := r.branch(ctx, service, j.Args.ConversationID, head, o, &done)
			switch fault := faultOf(ctx, err); {
			case fault == faultGone: // and with it what was to be done
			case fault != faultNone:
				ended = err
			case last.more:
				ended = goesOn
			case len(last.steps) > 0 && last.last().Outcome == tree.OutcomeFailed && !last.final:
				k := last.last()
				failed = fmt.Errorf("compaction %s of the branch that ends in %s: %s", k.ID, leaf.ID, k.Reason)
			}
			if ended != nil {
				break
			}
			tried = append(tried, head)
		}
		if ended != nil {
			return r.ended(ctx, j, ended)
		}
		rest, err := r.complete(ctx, j, tried, done, failed)
		switch {
		case faultOf(ctx, err) == faultGone:
			return river.JobCancel(err) // the conversation is gone, and with it the job
		case err != nil:
			return r.ended(ctx, j, err)
		case failed != nil || len(rest) == 0:
			return failed
		}
		heads, done, o.insists = rest, nil, false
	}
}

// branch compacts what the branch through head has grown to, unless it was
// looked at in this round.
func (r *runner) branch(ctx context.Context, service *Service, conversationID, head uuid.UUID, o order, done *[]looked) (leaf tree.Message, last result, err error) {
	if leaf, err = service.store.NewestLeaf(ctx, conversationID, head); err != nil {
		return leaf, last, err
	}
	if slices.ContainsFunc(*done, func(l looked) bool { return l.leaf.ID == leaf.ID }) {
		return leaf, last, nil
	}
	if last, err = service.compact(ctx, conversationID, leaf.ID, o); err == nil {
		*done = append(*done, looked{leaf, last.left})
	}
	return leaf, last, err
}

// ended tells River what to do of a job that didn't come to its end. The longer
// the database has been failing, the longer the job waits: each time a model may
// be asked again for what could not be stored.
func (r *runner) ended(ctx context.Context, j *river.Job[job], err error) error {
	switch {
	case err == goesOn, ctx.Err() != nil:
		return err
	case faultOf(ctx, err) == faultRefused:
		return err // an attempt: the same again would fail the same
	}
	r.w.log.WarnContext(ctx, "a compaction is tried again, as the database failed", "conversation_id", j.Args.ConversationID, "error", err)
	return river.JobSnooze(min(max(databasePause, time.Since(j.CreatedAt)/4), longestPause))
}

// NextRetry is at once for a job whose server died: it has waited until River
// took it for stuck, and nothing speaks against it. Otherwise River decides.
func (r *runner) NextRetry(j *river.Job[job]) time.Time {
	if j.AttemptedAt != nil && time.Since(*j.AttemptedAt) >= r.w.service.jobTimeout()+rescueSlack {
		return time.Now()
	}
	return time.Time{}
}

// complete completes a job whose branches still end in the leaves that were
// looked at, or below them within the room that was left, and gives the heads of
// those that don't, and of branches of which the job was told meanwhile. It looks
// while it holds the conversation's writers off: an append either comes before
// and is seen, or finds the job completed and queues the next. Of a job that has
// failed it only notes what is left to do.
func (r *runner) complete(ctx context.Context, j *river.Job[job], tried []uuid.UUID, done []looked, failed error) (rest []uuid.UUID, err error) {
	defer db.Wrap(&err, "summarize.complete(%s)", j.Args.ConversationID)
	rooms := map[uuid.UUID]room{}
	err = pgx.BeginFunc(ctx, r.w.pool, func(tx pgx.Tx) error {
		store := tree.New(tx).ForTenant(j.Args.TenantID)
		if err := store.Lock(ctx, j.Args.ConversationID); err != nil {
			return err
		}
		for _, l := range done {
			leaf, err := store.NewestLeaf(ctx, j.Args.ConversationID, l.leaf.ID)
			if errors.Is(err, fault.NotFound) {
				continue // pruned since
			}
			if err != nil {
				return err
			}
			l.left.tokens -= int(leaf.PathTokens - l.leaf.PathTokens)
			l.left.messages -= leaf.Depth - l.leaf.Depth
			if l.left.some() {
				rooms[leaf.ID] = l.left
			} else if leaf.ID != l.leaf.ID {
				rest = append(rest, leaf.ID)
			}
		}
		var metadata []byte
		if err := tx.QueryRow(ctx, "select metadata from river_job where id = $1 for update", j.ID).Scan(&metadata); err != nil {
			return err
		}
		for _, head := range branchesOf(metadata) {
			if !slices.Contains(tried, head) {
				rest = append(rest, head)
			}
		}
		if len(rest) > 0 || failed != nil {
			if failed != nil {
				rest = append(rest, tried...) // which of them failed is no matter: to look again costs little
			}
			_, err := tx.Exec(ctx, "update river_job set metadata = jsonb_set(metadata, '{"+branchesMember+"}', $2) where id = $1", j.ID, rest)
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j)
		return err
	})
	if err != nil {
		return nil, err
	}
	for id, left := range rooms {
		r.w.quiet.set(j.Args.ConversationID, id, left)
	}
	return rest, nil
}

// branchesOf reads the heads that a job was told of.
func branchesOf(metadata []byte) (heads []uuid.UUID) {
	var read map[string]json.RawMessage
	if json.Unmarshal(metadata, &read) == nil {
		_ = json.Unmarshal(read[branchesMember], &heads) // absent where there are none
	}
	return heads
}
