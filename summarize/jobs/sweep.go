package jobs

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A sweeper deletes attachments that no message names, and looks for summaries
// that wait to be made again, on branches to which nobody appends. It comes to each conversation in time. It queues jobs for a few
// conversations at once, and looks no further until those are done: a sweep
// finds no more than is worked off.
type sweeper struct {
	w      *Worker
	after  uuid.UUID // the conversation that was looked at last
	cancel context.CancelFunc
	done   chan struct{}
}

const (
	sweepPause        = 5 * time.Minute
	sweepReads        = 1000 // conversations that a sweep looks at
	sweepResummarizes = 8    // jobs that may wait, of all servers, for a sweep to add one; and branches of a conversation
	sweepTime         = time.Minute
)

// startSweeper sweeps at once, and then every few minutes.
func startSweeper(ctx context.Context, w *Worker) *sweeper {
	ctx, cancel := context.WithCancel(ctx)
	s := &sweeper{w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		ticks := time.NewTicker(sweepPause)
		defer ticks.Stop()
		for {
			if err := s.attachments(ctx); err != nil && ctx.Err() == nil {
				w.log.WarnContext(ctx, "attachments that no message names were not deleted", "error", err)
			}
			if w.service.AsksModels() {
				if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
					w.log.WarnContext(ctx, "summaries that wait to be made again were not looked for", "error", err)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
	}()
	return s
}

// stop ends the sweeps.
func (s *sweeper) stop() {
	if s != nil {
		s.cancel()
		<-s.done
	}
}

// attachments deletes those that were uploaded some time ago and that no message
// names.
func (s *sweeper) attachments(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	_, err := tree.New(s.w.pool).SweepAttachments(ctx, time.Now().Add(-tree.UnusedAttachmentAge), sweepReads)
	return err
}

// sweep goes on where the last sweep ended, and begins again after the last
// conversation.
func (s *sweeper) sweep(ctx context.Context) (err error) {
	defer db.Wrap(&err, "jobs.sweep(after %s)", s.after)
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	counts, err := s.w.Count(ctx)
	if err != nil {
		return err
	}
	room := sweepResummarizes - int(counts.Resummarizing)
	if room <= 0 {
		return nil
	}
	places, err := tree.New(s.w.pool).Places(ctx, s.after, sweepReads)
	if err != nil {
		return err
	}
	for _, place := range places {
		heads, err := s.w.service.ForTenant(place.TenantID).Waiting(ctx, place.ConversationID, sweepResummarizes)
		if trouble := summarize.TroubleOf(ctx, err); trouble != summarize.TroubleNone && trouble != summarize.TroubleGone {
			return err
		}
		if len(heads) > 0 {
			if room == 0 {
				return nil
			}
			if err := s.queue(ctx, place, heads); err != nil {
				return err
			}
			room--
		}
		s.after = place.ConversationID
	}
	if len(places) < sweepReads {
		s.after = uuid.Nil
	}
	return nil
}

// queue queues the making again of the summaries of a conversation's branches.
func (s *sweeper) queue(ctx context.Context, at tree.TenantConversation, heads []uuid.UUID) error {
	return pgx.BeginFunc(ctx, s.w.pool, func(tx pgx.Tx) error {
		for _, head := range heads {
			if err := s.w.queueResummarizing(ctx, tx, resummarizing{at.TenantID, at.ConversationID, head}, nil); err != nil {
				return err
			}
		}
		return nil
	})
}
