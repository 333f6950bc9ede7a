package quota

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// Two servers count together. Who is at a limit is refused until the next day, and no other
// tenant is.
func TestLimits(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	now := time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC)
	one, other := New(pool, slog.New(slog.DiscardHandler)), New(pool, slog.New(slog.DiscardHandler))
	one.now, other.now = func() time.Time { return now }, func() time.Time { return now }
	take := func(q *Quota, tenant string, makes, want bool) {
		t.Helper()
		if err := q.Take(tenant, makes); (err == nil) != want || err != nil && !errors.Is(err, fault.TooMany) {
			t.Errorf("a request of %s that makes something (%t): %v", tenant, makes, err)
		}
	}
	exchange := func() {
		t.Helper()
		check.NoError(t, one.Store(t.Context()))
		check.NoError(t, other.Store(t.Context()))
		take(one, "acme", false, true) // so that it asks again
		check.NoError(t, one.Store(t.Context()))
	}
	for _, limits := range []Limits{{Messages: new(10)}, {Messages: new(0), Bytes: new(1000)}, {Bytes: new(0), Cost: new(1.0)}} {
		check.NoError(t, one.SetLimits(t.Context(), "acme", limits))
		take(one, "acme", true, true)
		one.Add("acme", Amount{Messages: 9, Bytes: 900})
		one.Spent(access.With(t.Context(), "acme"), 0.75)
		one.Spent(context.Background(), 100) // of no tenant
		take(one, "acme", true, true)
		take(other, "acme", true, true)
		other.Add("acme", Amount{Messages: 1, Bytes: 100, Cost: 0.25})
		exchange()
		take(one, "acme", true, false)
		take(one, "acme", false, true) // still reads
		take(one, "other", true, true)
		now = now.Add(24 * time.Hour)
		take(one, "acme", true, true)
	}
	check.NoError(t, one.SetLimits(t.Context(), "acme", Limits{Requests: new(2), Cost: new(0.0)}))
	exchange()
	take(one, "acme", false, false)
	check.Equal(t, "the next day begins in", one.Wait(), time.Hour)
	check.NoError(t, one.SetLimits(t.Context(), "acme", Limits{Requests: new(3)}))
	check.NoError(t, one.Store(t.Context()))
	take(one, "acme", false, true) // though it did nothing since
	check.NoError(t, one.Store(t.Context()))
	day := check.Must(one.Day(t.Context(), "acme"))(t)
	check.Equal(t, "the day", day, (Day{Amount{Requests: 3}, Amount{Requests: 3}}))
	check.Fails(0, one.SetLimits(t.Context(), "acme", Limits{Cost: new(-1.0)}))(t, "a limit below 0", fault.Invalid)
}

// What is stored after midnight, before a request comes, is of the day before alone.
func TestMidnight(t *testing.T) {
	t.Parallel()
	q := New(dbtest.New(t), slog.New(slog.DiscardHandler))
	now := time.Date(2026, 11, 27, 23, 59, 58, 0, time.UTC)
	q.now = func() time.Time { return now }
	check.NoError(t, q.SetLimits(t.Context(), "acme", Limits{Messages: new(5)}))
	for range 2 {
		q.Add("acme", Amount{Messages: 9})
		now = now.Add(time.Second)
		check.NoError(t, q.Store(t.Context()))
	}
	check.NoError(t, q.Take("acme", true))
	check.NoError(t, q.Store(t.Context()))
	check.Equal(t, "the day", check.Must(q.Day(t.Context(), "acme"))(t).Used, (Amount{Requests: 1}))
}

// What couldn't be stored is stored the next time, once.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	q := New(dbtest.New(t), slog.New(slog.DiscardHandler))
	q.Add("acme", Amount{Bytes: 5})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check.Need(t, q.Store(ended) != nil, "it was stored")
	q.Add("acme", Amount{Bytes: 2})
	check.NoError(t, q.Store(t.Context()))
	check.NoError(t, q.Store(t.Context()))
	check.Equal(t, "the day", check.Must(q.Day(t.Context(), "acme"))(t).Used, (Amount{Bytes: 7}))
}
