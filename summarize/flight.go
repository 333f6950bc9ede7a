package summarize

import (
	"context"
	"errors"

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

// A flight is a compaction that runs for a caller. Callers that ask for the same at the
// same time get one result, for which models are paid once.
type flight struct {
	done   chan struct{} // closed at its end
	result result
	err    error
}

// atOnce runs a compaction, or waits for the one that runs already. Where that one ended
// because its own caller went away, the next in line runs it again.
func (s *Service) atOnce(ctx context.Context, key flightKey, run func() (result, error)) (result, error) {
	own := &flight{done: make(chan struct{}), err: context.Canceled} // for those who wait, if run panics
	for {
		running, waits := s.flights.LoadOrStore(key, own)
		if !waits {
			defer close(own.done)
			defer s.flights.Delete(key)
			own.result, own.err = run()
			return own.result, own.err
		}
		other := running.(*flight)
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
