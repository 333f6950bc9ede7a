package server

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
)

// rateLimiter returns a limiter at a time that the test moves.
func rateLimiter(perSecond float64, burst int) (l *limiter[int], pass func(time.Duration)) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l = newRateLimiter[int](perSecond, burst)
	l.now = func() time.Time { return now }
	return l, func(d time.Duration) { now = now.Add(d) }
}

func TestLimiterByTime(t *testing.T) {
	t.Parallel()
	l, pass := rateLimiter(2, 0)
	spend := func(key int) bool { _, ok := l.spend(key, l.perKey); return ok }
	spent := func() (n int) {
		for spend(0) {
			n++
		}
		return n
	}
	check.Equal(t, "at once", spent(), 20)
	pass(1500 * time.Millisecond)
	check.Equal(t, "after 1.5 s", spent(), 3)
	pass(time.Hour)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if spend(0) {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	check.Equal(t, "of several at once", passed.Load(), 20)
	for key := range 3 * maxKeys { // none of which is free of its units again
		if spend(key); len(l.byKey) > maxKeys {
			t.Fatalf("%d keys", len(l.byKey))
		}
	}
	pass(time.Hour)
	for key := range maxKeys {
		spend(-key)
	}
	if !spend(0) || len(l.byKey) > maxKeys {
		t.Errorf("%d keys", len(l.byKey))
	}
}

// underWay counts the units that are held or waited for.
func (l *limiter[K]) underWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.held) + len(l.waiting)
}
