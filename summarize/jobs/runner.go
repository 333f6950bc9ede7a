package jobs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// runner works River's jobs off.
type runner struct {
	river.WorkerDefaults[job]
	w *Worker
}

// Work compacts the branches that grew since the follower's place, and those that grow
// meanwhile. A failed compaction is an error, so that River waits longer each time
// before the next attempt. A failure of the database says nothing about the
// summarizer, so the job is then tried again as often as it takes.
func (r *runner) Work(ctx context.Context, j *river.Job[job]) error {
	store := tree.New(r.w.pool)
	t := task{
		service: r.w.service.ForTenant(j.Args.TenantID), conversationID: j.Args.ConversationID, done: map[uuid.UUID]bool{},
		round: summarize.Round{Until: time.Now().Add(r.w.slice), Insists: j.Attempt > 1 || snoozed(j.Metadata)},
	}
	for first := true; ; first = false {
		behind, grown, err := growthOf(ctx, store, Compactions, j.Args.ConversationID)
		if err != nil {
			return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
		}
		var heads []uuid.UUID
		for _, b := range grown.Leaves() {
			heads = append(heads, b.HeadID)
		}
		if first && !slices.ContainsFunc(grown.Branches, func(b tree.GrownBranch) bool { return b.HeadID == j.Args.HeadID }) {
			leaf, err := store.ForTenant(j.Args.TenantID).NewestLeaf(ctx, j.Args.ConversationID, j.Args.HeadID)
			if trouble := summarize.TroubleOf(ctx, err); trouble != summarize.TroubleNone && trouble != summarize.TroubleGone {
				return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
			}
			heads = append(heads, leaf.ID) // none where it is gone
		}
		failed, ended := t.compact(ctx, heads)
		switch {
		case ended != nil:
			return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, ended)
		case failed == nil:
			done, err := complete(ctx, r.w, j, Compactions, j.Args.ConversationID, behind...)
			if err != nil {
				return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
			}
			if done {
				return nil
			}
			t.round.Insists = false
			continue
		}
		switch {
		case t.away > 0: // it is the provider that failed: no attempt
			return later(j.JobRow, t.away)
		case j.Attempt >= j.MaxAttempts: // the conversation counts as handled: it is looked at again when it grows
			if _, err := store.Feed().Move(ctx, Compactions, behind...); err != nil {
				return r.w.ended(ctx, j.JobRow, j.Args.ConversationID, err)
			}
		}
		return failed
	}
}

// goesOn queues the job again at once. It is no attempt.
var goesOn = river.JobSnooze(0)

// growthOf returns how far a follower is behind in a conversation, and what changed
// since its place; nothing if it isn't behind.
func growthOf(ctx context.Context, store *tree.Store, follower string, conversationID uuid.UUID) (behind []tree.Pending, g tree.Growth, err error) {
	behind, err = store.Feed().Pending(ctx, follower, []uuid.UUID{conversationID})
	if err != nil || len(behind) == 0 {
		return nil, g, err
	}
	grown, err := store.Feed().Growths(ctx, behind...)
	if err != nil {
		return nil, g, err
	}
	return behind, grown[0], nil
}

// A task is a job under way.
type task struct {
	service        *summarize.Service
	conversationID uuid.UUID
	round          summarize.Round
	done           map[uuid.UUID]bool // heads of branches that were compacted
	away           time.Duration      // a branch failed as no model answered: when to try again
}

// compact compacts the branches that end in heads. A branch that failed doesn't keep
// it from the next; that the database fails, or that the time is over, ends it.
func (t *task) compact(ctx context.Context, heads []uuid.UUID) (failed, ended error) {
	for _, head := range heads {
		if t.done[head] || head == uuid.Nil {
			continue
		}
		p, err := t.service.CompactDue(ctx, t.conversationID, head, t.round)
		switch trouble := summarize.TroubleOf(ctx, err); {
		case trouble == summarize.TroubleGone: // and with it what was to be done
		case trouble != summarize.TroubleNone:
			return failed, err
		case p.More:
			return failed, goesOn
		case p.Failed != nil:
			failed, t.away = p.Failed, max(t.away, p.Away)
			continue
		}
		t.done[head] = true
	}
	return failed, nil
}

// ended tells River what to do of a job that didn't come to its end.
func (w *Worker) ended(ctx context.Context, j *rivertype.JobRow, conversationID uuid.UUID, err error) error {
	var spared *llm.SparedError
	var failed *llm.Error
	pause := databasePause
	switch {
	case err == goesOn, ctx.Err() != nil:
		return err
	case errors.As(err, &spared):
		return later(j, spared.Left)
	case errors.As(err, &failed):
		pause = failed.RetryAfter
	case summarize.TroubleOf(ctx, err) == summarize.TroubleRefused:
		return err // an attempt: the same again would fail the same
	}
	w.log.WarnContext(ctx, "a job is tried again, as the database or a provider failed", "kind", j.Kind, "conversation_id", conversationID, "error", err)
	return later(j, pause)
}

// later puts a job off, which is no attempt. The longer what the job needs has been
// failing, the longer it waits: each time a model may be asked again for what could not
// be stored.
func later(j *rivertype.JobRow, least time.Duration) error {
	return river.JobSnooze(min(max(least, databasePause, time.Since(j.CreatedAt)/4), longestPause))
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
