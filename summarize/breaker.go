package summarize

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-chat/coppice/llm"
)

// A breaker keeps a model that is down from being asked again and again. After
// a few failures in a row it lets one call through at a time, after a pause that
// doubles with each further failure. All conversations of a Service share it. Of
// all models of a Service that are down, one is tried at a time: so a call that
// tries whether a model is back holds one worker at most, and the others go on
// with the digest. A breaker counts what providers do wrong, and not what an
// answer is worth.
type breaker struct {
	mu       sync.Mutex
	failures int          // in a row; a timeout counts twice, as it costs most
	until    time.Time    // when the next call is let through, where it is open
	trying   bool         // a call was let through and has not ended
	trial    *atomic.Bool // a call of any model of the Service was let through and has not ended; nil for a model alone
	now      func() time.Time
}

const (
	breakerFailures = 3
	shortestPause   = 5 * time.Second
	longestPause    = time.Minute
)

func newBreaker(trial *atomic.Bool) *breaker { return &breaker{trial: trial, now: time.Now} }

// A sparedError is of a model that is not asked, as its last calls failed.
type sparedError struct {
	failures int
	left     time.Duration // until the next call is let through
}

func (e *sparedError) Error() string {
	return fmt.Sprintf("it is not asked: its last calls failed, and the next is let through in %s", e.left.Round(time.Second))
}

// enter asks for a call, whose end done is told. A nil breaker lets all through.
func (b *breaker) enter() (done func(error), _ error) {
	if b == nil {
		return func(error) {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures >= breakerFailures {
		if left := b.wait(); left > 0 {
			return nil, &sparedError{b.failures, left}
		}
		if b.trial != nil && !b.trial.CompareAndSwap(false, true) {
			return nil, &sparedError{b.failures, shortestPause}
		}
		b.trying = true
		return b.tried, nil
	}
	return b.leave, nil
}

// wait is how long no call is let through.
func (b *breaker) wait() time.Duration {
	switch {
	case b.failures < breakerFailures:
		return 0
	case b.trying:
		return shortestPause
	}
	return max(0, b.until.Sub(b.now()))
}

// spares tells how long no call of the model is let through; 0 where it may be asked.
func (b *breaker) spares() time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait()
}

// tried ends a call that was let through while the breaker was open.
func (b *breaker) tried(err error) {
	b.leave(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	if b.trial != nil {
		b.trial.Store(false)
	}
}

func (b *breaker) leave(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !providersFault(err):
		if !errors.Is(err, context.Canceled) {
			b.failures = 0 // it answered
		}
		return
	case errors.Is(err, context.DeadlineExceeded):
		b.failures += 2
	default:
		b.failures++
	}
	if over := b.failures - breakerFailures; over >= 0 {
		b.until = b.now().Add(min(shortestPause<<min(over, 10), longestPause))
	}
}

// providersFault tells whether an error of a call speaks against the provider,
// and not against the request or the caller.
func providersFault(err error) bool {
	if errors.As(err, new(answerError)) {
		return false
	}
	for _, kind := range []error{nil, llm.ErrInvalid, llm.ErrPromptTooLong, llm.ErrAnswerTooLong, llm.ErrCanceled, context.Canceled} {
		if errors.Is(err, kind) {
			return false
		}
	}
	return true
}
