package jobs

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// A sweeper deletes attachments that no message names. It comes to each in time.
type sweeper struct {
	w      *Worker
	at     tree.AttachmentSweep
	cancel context.CancelFunc
	done   chan struct{}
}

const (
	sweepPause = 5 * time.Minute
	sweepReads = 1000 // attachments that a sweep looks at
	sweepTime  = time.Minute
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
	_, err := s.at.Next(ctx, tree.New(s.w.pool), time.Now().Add(-tree.UnusedAttachmentAge), sweepReads)
	return err
}
