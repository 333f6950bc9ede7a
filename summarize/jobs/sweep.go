package jobs

import (
	"context"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// repeat calls f now, and then after each pause, until ctx is done or stop is called,
// which waits for it.
func repeat(ctx context.Context, pause time.Duration, f func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			f(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

const (
	sweepPause = 5 * time.Minute
	sweepReads = 1000 // attachments that a sweep looks at
	sweepTime  = time.Minute
)

// sweepAttachments deletes those that were uploaded some time ago and that no message
// names. It looks at some at a time, and comes to each in time.
func (w *Worker) sweepAttachments(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	_, err := w.swept.Next(limited, tree.New(w.pool), time.Now().Add(-tree.UnusedAttachmentAge), sweepReads)
	if err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "attachments that no message names were not deleted", "error", err)
	}
}
