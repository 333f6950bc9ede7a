package server

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRateLimit has one key use up what it may. Another key's requests pass,
// and so do those that need no key.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RateLimit, c.RateBurst = 1.0/3600, 3 })
	_, one := a.newKey("own")
	_, another := a.newKey("own")
	list := request{method: "GET", path: "/v1/conversations", header: bearer(one)}
	for left := range 3 {
		res := a.must(200, nil, list)
		want := []string{`"key";r=2;t=3600`, `"key";r=1;t=7200`, `"key";r=0;t=10800`}[left]
		if got := res.Header.Get("RateLimit"); got != want || res.Header.Get("RateLimit-Policy") != `"key";q=3;w=10800` {
			t.Errorf("RateLimit is %s, want %s; RateLimit-Policy is %s", got, want, res.Header.Get("RateLimit-Policy"))
		}
	}
	before := a.state()
	for _, r := range []request{list, {method: "POST", path: "/v1/conversations", body: `{}`, header: list.header}, {method: "POST", path: "/v1/conversations", body: `not even JSON`, header: list.header}} {
		p := a.refused(429, CodeRateLimited, r)
		res := a.send(r)
		if !strings.Contains(p.Detail, "Wait 3600 s") || res.Header.Get("Retry-After") != "3600" || !strings.Contains(res.Header.Get("RateLimit"), "r=0") {
			t.Errorf("%s: %v", p.Detail, res.Header)
		}
	}
	if a.state() != before {
		t.Error("a refused request changed something")
	}
	for _, r := range []request{{method: "GET", path: "/v1/conversations", header: bearer(another)}, {method: "GET", path: "/healthz", header: bearer(one)}, {method: "GET", path: "/metrics"}} {
		a.must(200, nil, r)
	}
	a.refused(401, CodeMissingKey, request{method: "GET", path: "/v1/conversations"})
}

// TestRateLimitWithoutKeys has everybody share one bucket.
func TestRateLimitWithoutKeys(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RateLimit = 0.0001 })
	list := request{method: "GET", path: "/v1/conversations"}
	a.must(200, nil, list)
	a.refused(429, CodeRateLimited, list)
	if got := a.with(t).must(200, nil, request{method: "GET", path: "/readyz"}).Header.Get("RateLimit"); got != "" {
		t.Errorf("a route without a limit has RateLimit %s", got)
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b := newBuckets(2, 0)
	b.now = func() time.Time { return now }
	if b.burst != 20 {
		t.Errorf("a burst of %d, want 20", b.burst)
	}
	key := uuid.New()
	taken := func() (n int) {
		for b.take(key, http.Header{}) == nil {
			n++
		}
		return n
	}
	if n := taken(); n != 20 {
		t.Errorf("%d at once, want 20", n)
	}
	now = now.Add(1500 * time.Millisecond)
	if n := taken(); n != 3 {
		t.Errorf("%d after 1.5 s, want 3", n)
	}
	now = now.Add(time.Hour)
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if b.take(key, http.Header{}) == nil {
					passed.Add(1)
				}
			}
		})
	}
	if all.Wait(); passed.Load() != 20 {
		t.Errorf("%d of several at once, want 20", passed.Load())
	}
	for range 3 * maxBuckets { // none of which fills up again
		_ = b.take(uuid.New(), http.Header{})
		if len(b.byKey) > maxBuckets {
			t.Fatalf("%d buckets", len(b.byKey))
		}
	}
	now = now.Add(time.Hour)
	for range maxBuckets {
		_ = b.take(uuid.New(), http.Header{})
	}
	if b.take(key, http.Header{}) != nil || len(b.byKey) > maxBuckets {
		t.Errorf("%d buckets", len(b.byKey))
	}
	var none *buckets
	if err := none.take(key, http.Header{}); err != nil {
		t.Error(err)
	}
}
