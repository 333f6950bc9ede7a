package llm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
)

// A breaker that fails three times in a row, or hangs twice, lets one call through
// at a time, after pauses that grow, or that the provider asks for. A call that is
// answered closes it. Of two that share a trial, one lets such a call through at a time.
func TestBreaker(t *testing.T) {
	t.Parallel()
	var (
		trial   atomic.Bool
		now     = time.Now()
		clock   = func() time.Time { return now }
		b       = llm.NewBreaker(&trial, clock)
		down    = &llm.Error{Kind: llm.ErrUnavailable}
		slow    = &llm.Error{Kind: llm.ErrTimeout, Err: context.DeadlineExceeded}
		gaveUp  = &llm.Error{Kind: llm.ErrCanceled, Err: context.Canceled}
		answers = []error{nil, &llm.Error{Kind: llm.ErrPromptTooLong}, &llm.Error{Kind: llm.ErrInvalid}}
	)
	call := func(err error) bool {
		t.Helper()
		done, spared := b.Enter()
		if spared != nil {
			return false
		}
		done(err)
		return true
	}
	for _, answer := range answers {
		for _, err := range []error{down, down, answer, down, down, gaveUp, down} {
			if !call(err) {
				t.Fatalf("it is open before %v", err)
			}
		}
		for i, pause := range []time.Duration{5, 10, 20, 40, 60, 60} {
			var spared *llm.SparedError
			if _, err := b.Enter(); !errors.As(err, &spared) || spared.Left != pause*time.Second || b.Spares() != spared.Left {
				t.Fatalf("pause %d is %v, want %d s", i, err, pause)
			}
			if now = now.Add(pause * time.Second); i < 5 && !call(down) {
				t.Fatalf("after pause %d no call is let through", i)
			}
		}
		done := check.Must(b.Enter())(t)
		if call(nil) {
			t.Error("two calls try at once whether the model is back")
		}
		done(context.Canceled) // which says nothing
		for range 2 {
			if !call(answer) || b.Spares() != 0 {
				t.Error("a call that is answered doesn't close it")
			}
		}
	}
	other := llm.NewBreaker(&trial, clock)
	for range 2 {
		done := check.Must(other.Enter())(t)
		done(slow)
		call(&llm.Error{Kind: llm.ErrRateLimited, RetryAfter: time.Hour})
	}
	call(slow)
	if other.Spares() != 10*time.Second || b.Spares() != other.Spares() {
		t.Errorf("calls that hang spare for %s, and those of which one does for %s", other.Spares(), b.Spares())
	}
	now = now.Add(time.Minute)
	done := check.Must(other.Enter())(t)
	if call(nil) {
		t.Error("two models are tried at once")
	}
	done(nil)
	if !call(&llm.Error{Kind: llm.ErrRateLimited, RetryAfter: time.Hour}) || b.Spares() != time.Minute {
		t.Errorf("a provider that asks for an hour is spared for %s", b.Spares())
	}
	if done, err := (*llm.Breaker)(nil).Enter(); err != nil {
		t.Error(err)
	} else {
		done(down)
	}
}
