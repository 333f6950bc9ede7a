package server

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// maxKeys bounds the memory of a limiter with a rate, to about a megabyte.
const maxKeys = 4096

// A limiter bounds how much requests hold of something, in units: the requests of
// one key, and all requests together. A key is what the limit is counted by: an API
// key, a tenant or an address.
//
// A unit is free again when the request leaves (hold) or, where the limiter has a
// rate, as time goes by (spend). A nil *limiter limits nothing.
type limiter[K comparable] struct {
	perKey float64 // units that one key may hold
	total  float64 // units that all keys may hold; 0 is any number
	rate   float64 // units of a key that are free again after a second; 0 is none before the request leaves
	now    func() time.Time

	mu      sync.Mutex
	held    float64 // by all keys, where there is a total
	byKey   map[K]holding
	waiting []*waiter[K] // the first that came first
}

// A holding is what one key holds.
type holding struct {
	units float64
	at    time.Time // when it was so many
}

// A waiter is a request that waits for units.
type waiter[K comparable] struct {
	key   K
	units float64
	has   chan struct{} // closed when the request holds its units
}

// newLimiter bounds requests under way. A total of 0 is any number.
func newLimiter[K comparable](perKey, total int) *limiter[K] {
	return &limiter[K]{perKey: float64(perKey), total: float64(total), now: time.Now, byKey: make(map[K]holding)}
}

// newRateLimiter bounds requests by time: so many of a key at once, and then so many
// a second. A burst of 0 is as many as come in 10 s. A rate of 0 limits nothing.
func newRateLimiter[K comparable](perSecond float64, burst int) *limiter[K] {
	if perSecond <= 0 {
		return nil
	}
	if burst < 1 {
		burst = max(1, int(min(math.Ceil(perSecond*10), math.MaxInt32)))
	}
	l := newLimiter[K](burst, 0)
	l.rate = perSecond
	return l
}

// hold takes units for a key, and waits for them at most for the timeout. It reports
// whether they came. A request that needs more than a key may hold takes all of it.
func (l *limiter[K]) hold(ctx context.Context, key K, units float64, timeout time.Duration) (leave func(), ok bool) {
	w := &waiter[K]{key, min(units, l.perKey), make(chan struct{})}
	l.mu.Lock()
	l.waiting = append(l.waiting, w)
	l.serve()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-w.has:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		// Units that came meanwhile win over an expired deadline.
		if i := slices.Index(l.waiting, w); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			l.serve()
			return nil, false
		}
	}
	return func() { l.giveBack(key, w.units) }, true
}

// giveBack frees units that a key holds.
func (l *limiter[K]) giveBack(key K, units float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(key, -units, l.now())
	l.serve()
}

// serve gives free units to the requests that wait, in their order. A key that holds
// all it may is passed over. A request for which the total leaves too little is not,
// as smaller ones would keep it waiting.
func (l *limiter[K]) serve() {
	now := l.now()
	for i := 0; i < len(l.waiting); {
		w := l.waiting[i]
		switch {
		case l.of(w.key, now)+w.units > l.perKey:
			i++
		case l.total > 0 && l.held+w.units > l.total:
			return
		default:
			l.add(w.key, w.units, now)
			l.waiting = slices.Delete(l.waiting, i, i+1)
			close(w.has)
		}
	}
}

// spend takes a unit of a key, if the key then holds at most so many. It returns how
// many the key holds.
func (l *limiter[K]) spend(key K, most float64) (held float64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	const rounding = 1e-9
	if held = l.of(key, now); held+1 > most+rounding {
		return held, false
	}
	l.add(key, 1, now)
	return held + 1, true
}

// debit takes a unit of a key also where none is free: several requests may have
// seen the same one. The debt is at most as large as what a key may hold.
func (l *limiter[K]) debit(key K) {
	if l != nil {
		l.spend(key, 2*l.perKey)
	}
}

// wait returns after how many seconds a unit of a key is free: 0 for now. It takes
// none.
func (l *limiter[K]) wait(key K) int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seconds(l.of(key, l.now()) + 1 - l.perKey)
}

// seconds returns how long it takes until so many units are free again, rounded up.
func (l *limiter[K]) seconds(units float64) int {
	return int(min(math.Ceil(max(units, 0)/l.rate), math.MaxInt32))
}

// of returns how many units a key holds.
func (l *limiter[K]) of(key K, now time.Time) float64 {
	h := l.byKey[key]
	return max(0, h.units-l.rate*now.Sub(h.at).Seconds())
}

// add adds to what a key holds. A key that holds nothing is forgotten.
func (l *limiter[K]) add(key K, units float64, now time.Time) {
	l.held += units
	h := holding{l.of(key, now) + units, now}
	if h.units <= 0 {
		delete(l.byKey, key)
		return
	}
	if _, known := l.byKey[key]; !known && l.rate > 0 && len(l.byKey) >= maxKeys {
		l.shrink(now)
	}
	l.byKey[key] = h
}

// shrink forgets the keys of a limiter with a rate that hold nothing any more. Where
// these are too few, it forgets others until half are left.
func (l *limiter[K]) shrink(now time.Time) {
	for key := range l.byKey {
		if l.of(key, now) == 0 {
			delete(l.byKey, key)
		}
	}
	if len(l.byKey) < maxKeys {
		return
	}
	for key := range l.byKey {
		if delete(l.byKey, key); len(l.byKey) <= maxKeys/2 {
			return
		}
	}
}
