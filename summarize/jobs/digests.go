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

// moveJobs moves jobs to digestQueue while only the digest is left. It asks the
// database only then.
func (w *Worker) moveJobs(ctx context.Context) {
	if w.service.OnlyDigest() {
		w.move(ctx, river.QueueDefault, digestQueue, time.Now().Add(-moverTimeout))
	}
}

func (w *Worker) move(ctx context.Context, from, to string, before time.Time) {
	err := w.queries.MoveJobs(ctx, db.MoveJobsParams{FromQueue: from, ToQueue: to, Before: before})
	if err != nil && ctx.Err() == nil {
		w.log.WarnContext(ctx, "compactions were not moved to another queue", "from", from, "to", to, "error", err)
	}
}
