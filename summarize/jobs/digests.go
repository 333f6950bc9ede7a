package jobs

import (
	"context"
	"runtime"
	"time"

	"github.com/riverqueue/river"

	"github.com/coppice-chat/coppice/db"
)

// digestQueue has the compactions that waited for a worker in vain while no model
// answered: calls that hang hold the workers of the other queue. Its own workers
// ask no model whose last calls failed. So the digest does at once what it may do.
// Any other branch of such a job waits for a model in the other queue.
const digestQueue = "digests"

// digestWorkers is how many digests are made at once: the processors bound them.
func digestWorkers() int { return max(2, runtime.GOMAXPROCS(0)) }

const (
	moverPause   = time.Second
	moverTimeout = 2 * time.Second // free workers have taken a job by then: they look once a second
)

// A mover moves jobs to digestQueue while only the digest is left.
type mover struct {
	w      *Worker
	cancel context.CancelFunc
	done   chan struct{}
}

// startMover looks every second, and asks the database only while no model answers.
func startMover(ctx context.Context, w *Worker) *mover {
	ctx, cancel := context.WithCancel(ctx)
	m := &mover{w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		ticks := time.NewTicker(moverPause)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticks.C:
				if w.service.OnlyDigest() {
					m.move(ctx, river.QueueDefault, digestQueue, now.Add(-moverTimeout))
				}
			}
		}
	}()
	return m
}

func (m *mover) move(ctx context.Context, from, to string, before time.Time) {
	err := m.w.queries.MoveJobs(ctx, db.MoveJobsParams{FromQueue: from, ToQueue: to, Before: before})
	if err != nil && ctx.Err() == nil {
		m.w.log.WarnContext(ctx, "compactions were not moved to another queue", "from", from, "to", to, "error", err)
	}
}

// stop ends the moves, and leaves no job in a queue that older programs don't know.
func (m *mover) stop(ctx context.Context) {
	if m != nil {
		m.cancel()
		<-m.done
		m.move(ctx, digestQueue, river.QueueDefault, time.Now().Add(time.Hour))
	}
}
