package server

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	if n := spent(); n != 20 {
		t.Errorf("%d at once, want 20", n)
	}
	pass(1500 * time.Millisecond)
	if n := spent(); n != 3 {
		t.Errorf("%d after 1.5 s, want 3", n)
	}
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
	if all.Wait(); passed.Load() != 20 {
		t.Errorf("%d of several at once, want 20", passed.Load())
	}
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

// TestDebtOfFailuresIsBounded has many requests see the same free unit.
func TestDebtOfFailuresIsBounded(t *testing.T) {
	t.Parallel()
	l, _ := rateLimiter(1, 10)
	if l.wait(1) != 0 || len(l.byKey) != 0 {
		t.Error("asking remembered a key")
	}
	for debits, want := range map[int]int{15: 6, 1000: 11} {
		l.byKey = map[int]holding{}
		for range debits {
			l.debit(1)
		}
		if got := l.wait(1); got != want {
			t.Errorf("after %d at once a wait of %d s, want %d", debits, got, want)
		}
	}
	var none *limiter[int]
	if none.debit(1); none.wait(1) != 0 {
		t.Error("no limit refuses")
	}
}

// underWay counts the units that are held or waited for.
func (l *limiter[K]) underWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.held) + len(l.waiting)
}

func TestLimiterOfRequestsUnderWay(t *testing.T) {
	t.Parallel()
	l := newLimiter[string](2, 4)
	hold := func(key string, units float64) func() {
		leave, _ := l.hold(t.Context(), key, units, 0)
		return leave
	}
	a1, a2 := hold("a", 1), hold("a", 1)
	if a1 == nil || a2 == nil || hold("a", 1) != nil {
		t.Error("two, and not three, of one key were to pass")
	}
	b, c := hold("b", 1), hold("c", 1)
	if b == nil || c == nil || hold("d", 1) != nil {
		t.Error("four, and not five, were to pass")
	}
	// Three wait: one for a unit of its key, then one for two of all, then one behind it.
	came := make(chan func(), 3)
	for n, w := range []struct {
		key   string
		units float64
	}{{"a", 1}, {"d", 5}, {"e", 1}} {
		go func() {
			leave, ok := l.hold(t.Context(), w.key, w.units, time.Minute)
			if !ok {
				t.Errorf("%s waits in vain", w.key)
			}
			came <- leave
		}()
		eventually(t, "a request that waits", func() bool { return l.underWay() == 4+n+1 })
	}
	b() // one unit is too little for the second, and the third doesn't overtake it
	if n := l.underWay(); n != 3+3 {
		t.Errorf("%d are under way", n)
	}
	c()
	d := <-came
	if hold("f", 1) != nil {
		t.Error("the request of two units holds fewer")
	}
	a1()
	a3 := <-came
	a2()
	(<-came)()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if leave, ok := l.hold(gone, "f", 1, time.Minute); !ok {
		t.Error("a free unit is refused")
	} else {
		leave()
	}
	for _, leave := range []func(){a3, d} {
		leave()
	}
	if len(l.byKey) != 0 || l.held != 0 || len(l.waiting) != 0 {
		t.Errorf("%d keys, %g units and %d that wait stay", len(l.byKey), l.held, len(l.waiting))
	}
}
