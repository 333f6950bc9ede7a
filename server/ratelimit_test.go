package server

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

func TestLimiterByTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l, pass := newRateLimiter[int](2, 0), func(d time.Duration) { now = now.Add(d) }
	l.now = func() time.Time { return now }
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
	check.That(t, spend(0) && len(l.byKey) <= maxKeys, "%d keys", len(l.byKey))
}

// underWay counts the units that are held or waited for.
func (l *limiter[K]) underWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.held) + len(l.waiting)
}

// One key uses up what it may. Another key's requests pass, and those that need no key.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) { c.RateLimit, c.RateBurst = 1.0/3600, 3 })
	begin := time.Now()
	a.server.limits.rate.now = func() time.Time { return begin } // else a second may pass, and the waits are shorter
	_, one := a.newKey("own")
	_, another := a.newKey("own")
	list := request{method: "GET", path: "/v1/conversations", header: bearer(one)}
	for left := range 3 {
		res := a.must(200, nil, list)
		want := []string{`"key";r=2;t=3600`, `"key";r=1;t=7200`, `"key";r=0;t=10800`}[left]
		check.Equal(t, "RateLimit", res.Header.Get("RateLimit"), want)
		check.Equal(t, "RateLimit-Policy", res.Header.Get("RateLimit-Policy"), `"key";q=3;w=10800`)
	}
	before := a.state()
	for _, r := range []request{list, {method: "POST", path: "/v1/conversations", body: `{}`, header: list.header}, {method: "POST", path: "/v1/conversations", body: `not even JSON`, header: list.header}} {
		p := a.refused(429, CodeRateLimited, r)
		res := a.send(r)
		if !strings.Contains(p.Detail, "Wait 3600 s") || res.Header.Get("Retry-After") != "3600" || !strings.Contains(res.Header.Get("RateLimit"), "r=0") {
			t.Errorf("%s: %v", p.Detail, res.Header)
		}
	}
	check.Equal(t, "what is stored", a.state(), before)
	for _, r := range []request{{method: "GET", path: "/v1/conversations", header: bearer(another)}, {method: "GET", path: "/healthz", header: bearer(one)}, {method: "GET", path: "/metrics"}} {
		a.must(200, nil, r)
	}
	a.refused(401, CodeMissingKey, request{method: "GET", path: "/v1/conversations"})
}

// fewFailures lets an address send n requests without a good key, at a time that
// the test moves.
func fewFailures(a *testAPI, n int) (pass func(time.Duration)) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := newRateLimiter[sender](1, n)
	l.now = func() time.Time { return now }
	a.server.limits.failedAuth = l
	return func(d time.Duration) { now = now.Add(d) }
}

// TestUnknownKeysCostNoQueryOverTheLimit has an address send unknown keys, up to its limit of
// look-ups. Good keys pass all the same, and other addresses. A revoked key has its own limit.
func TestUnknownKeysCostNoQueryOverTheLimit(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	pass := fewFailures(a, 3)
	_, fresh := a.newKey("own")
	revoked, one := a.newKey("own")
	former := "cop_" + strings.Repeat("Z", 43) // as versions before made them
	hash := sha256.Sum256([]byte(former))
	check.Must(a.pool.Exec(t.Context(), "insert into api_keys (id, tenant_id, name, key_hash, created_at) values (gen_random_uuid(), 'own', '', $1, now())", hash[:]))(t)
	list := func(secret string) request {
		return request{method: "GET", path: "/v1/conversations", header: bearer(secret)}
	}
	unknown := func() request { return list("cop_" + strings.Repeat(uuid.New().String()[:1], 43)) }
	a.must(200, nil, list(former))
	check.Must(a.keys.Revoke(t.Context(), revoked.ID))(t)
	for range 3 {
		a.refused(401, CodeInvalidKey, unknown())
		a.refused(401, CodeInvalidKey, list(one))
	}
	before := a.pool.Stat().AcquireCount()
	refused := []request{list("cop_x"), list("sk-whatever"), {method: "GET", path: "/v1/conversations"}, {method: "POST", path: "/v1/imports", body: "[]"}, list(one)}
	for range 50 {
		refused = append(refused, unknown())
	}
	for _, r := range refused {
		check.Has(t, "the detail", a.refused(429, CodeRateLimited, r).Detail, "Wait 1 s")
	}
	check.Equal(t, "connections taken", a.pool.Stat().AcquireCount()-before, 0)
	for range 10 {
		a.must(200, nil, list(former))
		a.must(200, nil, list(fresh))
	}
	for _, open := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml"} {
		a.must(200, nil, request{method: "GET", path: open})
	}
	for remote, want := range map[string]int{"192.0.2.1:99": 401, "[2001:db8::1]:99": 401, "[2001:db8:0:1::1]:99": 401, "127.0.0.1:99": 429, "[::ffff:127.0.0.1]:99": 429} {
		check.Equal(t, remote, a.direct(remote, "http://localhost/v1/conversations", nil).Code, want)
	}
	pass(time.Second)
	a.refused(401, CodeInvalidKey, list(one))
	a.refused(429, CodeRateLimited, list(one))
}

// TestProbesShareAnAnswer asks whether the server is ready, all the time.
func TestProbesShareAnAnswer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	asked, failure := 0, error(nil)
	a := newAPI(t, func(c *Config) {
		c.Ready = func(context.Context) error { asked++; return failure }
	})
	a.server.readiness.now = func() time.Time { return now }
	probe := request{method: "GET", path: "/readyz"}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				a.must(200, nil, probe)
			}
		})
	}
	all.Wait()
	check.Equal(t, "how often 40 probes asked the database", asked, 1)
	now, failure = now.Add(readyFresh), errBroken
	for range 2 {
		check.Lacks(t, "the detail", a.refused(503, CodeNotReady, probe).Detail, "wires")
		check.Has(t, "the log", a.log.String(), "wires")
	}
	if failure = nil; a.must(200, nil, probe).StatusCode != 200 || asked != 4 {
		t.Errorf("asked %d times, want 4: a failure is no answer for others", asked)
	}
}

// A server isn't ready after an answer that the database takes no writes, until it
// takes them again. Here it was set to read only.
func TestReadinessFollowsWrites(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a.server.readiness.now = func() time.Time { return now }
	readOnly := func(is string) {
		conn := check.Must(a.pool.Acquire(t.Context()))(t)
		defer conn.Release()
		database := pgx.Identifier{conn.Conn().Config().Database}.Sanitize()
		for _, statement := range []string{"set default_transaction_read_only = off", "alter database " + database + " set default_transaction_read_only = " + is} {
			check.Must(conn.Exec(t.Context(), statement))(t)
		}
		a.pool.Reset()
	}
	ready, create := request{method: "GET", path: "/readyz"}, request{method: "POST", path: "/v1/conversations", body: `{}`}
	readOnly("on")
	a.must(200, nil, ready)
	a.refused(503, CodeDatabaseReadOnly, create)
	a.refused(503, CodeDatabaseReadOnly, ready)
	readOnly("off")
	now = now.Add(refusalFresh)
	a.must(200, nil, ready)
	a.must(201, nil, create)
}
