package server

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory of rate limits, to about a megabyte.
const maxBuckets = 4096

// buckets hold a token bucket for each of what is limited: API keys, of which a
// server without keys has one for all, or addresses. Each server has its own.
type buckets[K comparable] struct {
	rate  float64 // tokens that come back in a second
	burst int     // that fit
	now   func() time.Time

	mu    sync.Mutex
	byKey map[K]*rate.Limiter
}

// newBuckets gives nil, which limits nothing, where the rate is 0.
func newBuckets[K comparable](perSecond float64, burst int) *buckets[K] {
	if perSecond <= 0 {
		return nil
	}
	if burst < 1 {
		burst = max(1, int(min(math.Ceil(perSecond*10), math.MaxInt32)))
	}
	return &buckets[K]{rate: perSecond, burst: burst, now: time.Now, byKey: make(map[K]*rate.Limiter)}
}

// take takes a token of the key's. It says in the answer's headers how many are
// left, and refuses the request where none was.
func (b *buckets[K]) take(key K, h http.Header) error {
	if b == nil {
		return nil
	}
	now := b.now()
	bucket := b.of(key, now)
	allowed := bucket.AllowN(now, 1)
	tokens := max(bucket.TokensAt(now), 0)
	h.Set("RateLimit-Policy", fmt.Sprintf(`"key";q=%d;w=%d`, b.burst, b.seconds(float64(b.burst))))
	h.Set("RateLimit", fmt.Sprintf(`"key";r=%d;t=%d`, int(tokens), b.seconds(float64(b.burst)-tokens)))
	if allowed {
		return nil
	}
	wait := max(b.seconds(1-tokens), 1)
	h.Set("Retry-After", strconv.Itoa(wait))
	return problemf(CodeRateLimited, "", "The key sent more requests than it may: %d at once, and then %g a second. Wait %d s, and send this one again.", b.burst, b.rate, wait)
}

// wait is how many seconds it takes until there is a token for the key, 0 where
// there is one. It takes none.
func (b *buckets[K]) wait(key K) int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	bucket, ok := b.byKey[key]
	b.mu.Unlock()
	if !ok {
		return 0
	}
	if tokens := bucket.TokensAt(b.now()); tokens < 1 {
		return max(b.seconds(1-tokens), 1)
	}
	return 0
}

// charge takes a token of the key's also where there is none: several requests
// may have seen the same one. The debt is bounded.
func (b *buckets[K]) charge(key K) {
	if b == nil {
		return
	}
	now := b.now()
	if bucket := b.of(key, now); bucket.TokensAt(now) > -float64(b.burst) {
		bucket.ReserveN(now, 1)
	}
}

// addressOf is the address of a client, of IPv6 the network of 64 bits, which is
// what one client has of it at least. An address of another kind is as good as
// none.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address
	}
	network, _ := address.Prefix(64) // which every IPv6 address has
	return network.Addr()
}

// seconds is how long it takes until so many tokens have come back, rounded up.
func (b *buckets[K]) seconds(tokens float64) int {
	return int(min(math.Ceil(tokens/b.rate), math.MaxInt32))
}

func (b *buckets[K]) of(key K, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket, ok := b.byKey[key]
	if !ok {
		if len(b.byKey) >= maxBuckets {
			b.shrink(now)
		}
		bucket = rate.NewLimiter(rate.Limit(b.rate), b.burst)
		b.byKey[key] = bucket
	}
	return bucket
}

// shrink drops the buckets that are full, which are as good as new ones. Where
// too few are, it drops others until half are left: so many keys at once are
// more than this keeps apart.
func (b *buckets[K]) shrink(now time.Time) {
	for key, bucket := range b.byKey {
		if bucket.TokensAt(now) >= float64(b.burst) {
			delete(b.byKey, key)
		}
	}
	if len(b.byKey) < maxBuckets {
		return
	}
	for key := range b.byKey {
		if delete(b.byKey, key); len(b.byKey) <= maxBuckets/2 {
			return
		}
	}
}
