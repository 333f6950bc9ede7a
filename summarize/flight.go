package summarize

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// A flightKey says what compaction is asked for.
type flightKey struct {
	tenant             string
	conversation, head uuid.UUID
	trigger            Trigger
	demand             Demand
	demanded           bool
}

// flights are the compactions that run for a caller. Callers that ask for the same at
// the same time get one result, for which models are paid once.
type flights struct {
	mu      sync.Mutex
	running map[flightKey]*flight
}

type flight struct {
	done   chan struct{} // closed at its end
	result result
	err    error
}

// do runs a compaction, or waits for the one that runs already. Where that one ended
// because its own caller went away, the next in line runs it again.
func (f *flights) do(ctx context.Context, key flightKey, run func() (result, error)) (result, error) {
	for {
		f.mu.Lock()
		other, waits := f.running[key]
		if !waits {
			own := &flight{done: make(chan struct{})}
			f.running[key] = own
			f.mu.Unlock()
			defer func() {
				f.mu.Lock()
				delete(f.running, key)
				f.mu.Unlock()
				close(own.done)
			}()
			own.err = context.Canceled // for those who wait, if run panics
			own.result, own.err = run()
			return own.result, own.err
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return result{}, ctx.Err()
		case <-other.done:
		}
		if !errors.Is(other.err, context.Canceled) && !errors.Is(other.err, context.DeadlineExceeded) {
			return other.result, other.err
		}
	}
}
