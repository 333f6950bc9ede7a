package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Breaker keeps a model that is down from being asked again and again. After
// a few failures in a row it lets one call through at a time, after a pause that
// doubles with each further failure, or that the provider asks for. All who ask the
// model share it. Of several Breakers with the same trial, one lets such a call through
// at a time: so a call that tries whether a model is back holds one worker at most. A
// Breaker counts what providers do wrong, and not what an answer is worth.
type Breaker struct {
	mu       sync.Mutex
	failures int          // in a row; a timeout counts twice, as it costs most
	until    time.Time    // when the next call is let through, where it is open
	trying   bool         // a call was let through and has not ended
	trial    *atomic.Bool // a call of any of the models was let through and has not ended
	now      func() time.Time
}

// ShortestPause is the time from a Breaker's opening to the next call.
const ShortestPause = 5 * time.Second

const (
	breakerFailures = 3
	longestPause    = time.Minute
)

// NewBreaker returns a Breaker that reads the time by now.
func NewBreaker(trial *atomic.Bool, now func() time.Time) *Breaker {
	return &Breaker{trial: trial, now: now}
}

// A SparedError says that a model was not asked, because its last calls failed.
type SparedError struct{ Left time.Duration } // until the next call is let through

func (e *SparedError) Error() string {
	return fmt.Sprintf("it is not asked: its last calls failed, and the next is let through in %s", e.Left.Round(time.Second))
}

// Enter asks for a call, whose error is to be told to done. It returns a *SparedError
// where the model is not to be asked. A nil Breaker lets all through.
func (b *Breaker) Enter() (done func(error), _ error) {
	if b == nil {
		return func(error) {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakerFailures {
		return b.leave, nil
	}
	if left := b.wait(); left > 0 {
		return nil, &SparedError{left}
	}
	if !b.trial.CompareAndSwap(false, true) {
		return nil, &SparedError{ShortestPause}
	}
	b.trying = true
	return func(err error) {
		b.leave(err)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.trying = false
		b.trial.Store(false)
	}, nil
}

// Spares returns how long no call is let through; 0 where the model may be asked.
func (b *Breaker) Spares() time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait()
}

func (b *Breaker) wait() time.Duration {
	switch {
	case b.failures < breakerFailures:
		return 0
	case b.trying:
		return ShortestPause
	}
	return max(0, b.until.Sub(b.now()))
}

func (b *Breaker) leave(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case errors.Is(err, ErrCanceled), errors.Is(err, context.Canceled): // which says nothing
		return
	case !ProvidersFault(err):
		b.failures = 0 // it answered
		return
	case errors.Is(err, context.DeadlineExceeded):
		b.failures += 2
	default:
		b.failures++
	}
	if over := b.failures - breakerFailures; over >= 0 {
		pause := ShortestPause << min(over, 10)
		if e := (*Error)(nil); errors.As(err, &e) {
			pause = max(pause, e.RetryAfter)
		}
		b.until = b.now().Add(min(pause, longestPause))
	}
}

// ProvidersFault reports whether the error of a call speaks against the provider, and
// not against the request or the caller.
func ProvidersFault(err error) bool {
	for _, kind := range []error{nil, ErrInvalid, ErrPromptTooLong, ErrAnswerTooLong, ErrCanceled, context.Canceled} {
		if errors.Is(err, kind) {
			return false
		}
	}
	return true
}
