package embed

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/llm"
)

// A breaker keeps a model that fails from being asked again and again, by
// questions and jobs alike.
type breaker struct {
	mu       sync.Mutex
	failures int // in a row
	until    time.Time
	now      func() time.Time
}

const (
	breakerFailures = 3
	shortestPause   = 5 * time.Second
	longestPause    = time.Minute
)

// A SparedError says that the model was not asked, because its last calls failed.
type SparedError struct{ Left time.Duration }

func (e *SparedError) Error() string {
	return fmt.Sprintf("the embedding model is not asked: its last calls failed, and the next is let through in %s", e.Left.Round(time.Second))
}

// enter returns a *SparedError where the model is not to be asked. After a pause
// it lets calls through again, of which the first failure begins the next pause.
func (b *breaker) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.until.Sub(b.now()); b.failures >= breakerFailures && left > 0 {
		return &SparedError{left}
	}
	return nil
}

func (b *breaker) leave(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case errors.Is(err, llm.ErrCanceled):
	case err == nil, refused(err):
		b.failures = 0 // it answered
	default:
		b.failures++
		pause := shortestPause << min(max(b.failures-breakerFailures, 0), 10)
		var e *llm.Error
		if errors.As(err, &e) {
			pause = max(pause, e.RetryAfter)
		}
		b.until = b.now().Add(min(pause, longestPause))
	}
}

// refused tells whether the provider answered that it doesn't take the texts.
func refused(err error) bool {
	return errors.Is(err, llm.ErrInvalid) || errors.Is(err, llm.ErrPromptTooLong)
}
