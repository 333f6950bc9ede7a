package server

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/time/rate"
)

// maxBuckets bounds the memory of rate limits, to about a megabyte.
const maxBuckets = 4096

// buckets hold a token bucket for each key: a request takes a token, and a
// server without keys has one bucket for all. Each server has its own.
type buckets struct {
	rate  float64 // tokens that come back in a second
	burst int     // that fit
	now   func() time.Time

	mu    sync.Mutex
	byKey map[uuid.UUID]*rate.Limiter
}

// newBuckets gives nil, which limits nothing, where the rate is 0.
func newBuckets(perSecond float64, burst int) *buckets {
	if perSecond <= 0 {
		return nil
	}
	if burst < 1 {
		burst = max(1, int(min(math.Ceil(perSecond*10), math.MaxInt32)))
	}
	return &buckets{rate: perSecond, burst: burst, now: time.Now, byKey: make(map[uuid.UUID]*rate.Limiter)}
}

// take takes a token of the key's. It says in the answer's headers how many are
// left, and refuses the request where none was.
func (b *buckets) take(key uuid.UUID, h http.Header) error {
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

// seconds is how long it takes until so many tokens have come back, rounded up.
func (b *buckets) seconds(tokens float64) int {
	return int(min(math.Ceil(tokens/b.rate), math.MaxInt32))
}

func (b *buckets) of(key uuid.UUID, now time.Time) *rate.Limiter {
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
func (b *buckets) shrink(now time.Time) {
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
