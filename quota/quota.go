// Package quota counts what each tenant uses in a day of UTC, and says when that is all
// that the tenant may use.
//
// A server counts in memory. Each two seconds it adds what it counted to one row of each
// tenant that did something, and reads what all servers counted. So no request waits for
// the count, and a limit is passed by what comes within that time.
package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// interval is how often the count of all servers is read.
const interval = 2 * time.Second

// KeepDays is for how many days counts are kept.
const KeepDays = 400

// An Amount is what a tenant uses in a day, or may use, where 0 is any amount.
type Amount struct {
	Requests int64   `json:"requests"` // with a good key, or a session
	Messages int64   `json:"messages"` // stored
	Bytes    int64   `json:"bytes"`    // of those messages, and of files
	Cost     float64 `json:"cost"`     // of calls of models that have a price
}

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Requests + b.Requests, a.Messages + b.Messages, a.Bytes + b.Bytes, a.Cost + b.Cost}
}

func (a Amount) minus(b Amount) Amount {
	return Amount{a.Requests - b.Requests, a.Messages - b.Messages, a.Bytes - b.Bytes, a.Cost - b.Cost}
}

// A Quota counts for all tenants. Several goroutines may use it.
type Quota struct {
	q   *db.Queries
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	day     time.Time            // of what tenants used
	tenants map[string]*standing // that did something on that day
}

// standing is how it stands with a tenant.
type standing struct {
	stored Amount // by all servers, as it was read last
	added  Amount // by this one, and not stored yet
	limits Amount
	asked  bool // since it was read last
}

// New returns a Quota over a pool.
func New(h db.Handle, log *slog.Logger) *Quota {
	return &Quota{q: db.New(h), log: log, now: time.Now, tenants: map[string]*standing{}}
}

// of returns a tenant's standing of today. The caller holds mu.
func (q *Quota) of(tenant string) *standing {
	if today := q.today(); !today.Equal(q.day) {
		q.day, q.tenants = today, map[string]*standing{}
	}
	s := q.tenants[tenant]
	if s == nil {
		s = &standing{}
		q.tenants[tenant] = s
	}
	return s
}

func (q *Quota) today() time.Time { return q.now().UTC().Truncate(24 * time.Hour) }

// Add counts what a tenant used.
func (q *Quota) Add(tenant string, a Amount) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(tenant)
	s.added = s.added.plus(a)
}

// Take counts a request. It returns a fault.TooMany where the tenant has sent as many as
// it may. A request that stores something, or calls a model, is refused as well where the
// tenant has used up another limit.
func (q *Quota) Take(tenant string, makes bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.of(tenant)
	s.asked = true // also who is refused: the limit may be raised
	used, most := s.stored.plus(s.added), s.limits
	what := ""
	switch {
	case most.Requests > 0 && used.Requests >= most.Requests:
		what = fmt.Sprintf("%d requests", most.Requests)
	case !makes:
	case most.Messages > 0 && used.Messages >= most.Messages:
		what = fmt.Sprintf("%d messages", most.Messages)
	case most.Bytes > 0 && used.Bytes >= most.Bytes:
		what = fault.Bytes(most.Bytes)
	case most.Cost > 0 && used.Cost >= most.Cost:
		what = fmt.Sprintf("a cost of %g", most.Cost)
	}
	if what != "" {
		return fault.New(fault.TooMany, "daily_limit", "", "Your tenant has used all that it may in a day: %s. The next day begins at %s.", what, q.day.Add(24*time.Hour).Format(time.RFC3339))
	}
	s.added.Requests++
	return nil
}

// Wait returns the time until the next day begins.
func (q *Quota) Wait() time.Duration { return q.today().Add(24 * time.Hour).Sub(q.now()) }

// Run stores what is counted, until ctx ends, and then once more.
func (q *Quota) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			q.flush(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			q.flush(ctx)
		}
	}
}

// flush stores and logs an error. What wasn't stored is added the next time.
func (q *Quota) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	if err := q.Store(ctx); err != nil {
		q.log.WarnContext(ctx, "what tenants used could not be counted", "error", err)
	}
}

// Store adds what was counted to what all servers counted, and reads that and the limits.
func (q *Quota) Store(ctx context.Context) (err error) {
	defer db.Wrap(&err, "quota.Store")
	q.mu.Lock()
	tenants, sent := q.tenants, map[string]Amount{}
	p := db.AddTenantDaysParams{Day: date(q.day)}
	for tenant, s := range tenants {
		if s.added == (Amount{}) && !s.asked {
			continue
		}
		s.asked = false
		sent[tenant] = s.added
		p.TenantIds, p.Requests, p.Messages = append(p.TenantIds, tenant), append(p.Requests, s.added.Requests), append(p.Messages, s.added.Messages)
		p.Bytes, p.Costs = append(p.Bytes, s.added.Bytes), append(p.Costs, s.added.Cost)
	}
	q.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	days, err := q.q.AddTenantDays(ctx, p)
	if err != nil {
		return err
	}
	limits, err := q.q.ListTenantLimits(ctx, p.TenantIds)
	q.mu.Lock()
	defer q.mu.Unlock()
	most := map[string]Amount{}
	for _, row := range limits {
		most[row.TenantID] = Amount{row.Requests, row.Messages, row.Bytes, row.Cost}
	}
	for _, row := range days {
		s := tenants[row.TenantID] // not of: the next day may have begun, unnoticed
		s.stored, s.added = Amount{row.Requests, row.Messages, row.Bytes, row.Cost}, s.added.minus(sent[row.TenantID])
		if err == nil {
			s.limits = most[row.TenantID]
		}
	}
	return err
}

// A Day is what a tenant used today, and what it may use in a day.
type Day struct {
	Used   Amount `json:"used"`
	Limits Amount `json:"limits"`
}

// Day returns what is stored of a tenant.
func (q *Quota) Day(ctx context.Context, tenant string) (d Day, err error) {
	defer db.Wrap(&err, "quota.Day(%q)", tenant)
	used, err := q.q.GetTenantDay(ctx, db.GetTenantDayParams{TenantID: tenant, Day: date(q.today())})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return d, err
	}
	limits, err := q.q.ListTenantLimits(ctx, []string{tenant})
	if err != nil {
		return d, err
	}
	d.Used = Amount{used.Requests, used.Messages, used.Bytes, used.Cost}
	for _, row := range limits {
		d.Limits = Amount{row.Requests, row.Messages, row.Bytes, row.Cost}
	}
	return d, nil
}

// Limits are what to set of a tenant's limits; nil stays.
type Limits struct {
	Requests, Messages, Bytes *int
	Cost                      *float64
}

// SetLimits sets limits of a tenant. Servers heed them within some seconds. A
// fault.Invalid names one below 0.
func (q *Quota) SetLimits(ctx context.Context, tenant string, l Limits) (err error) {
	defer db.Wrap(&err, "quota.SetLimits(%q)", tenant)
	p := db.SetTenantLimitsParams{TenantID: tenant}
	for _, limit := range []struct {
		field string
		given *int
		to    *pgtype.Int8
	}{{"requests", l.Requests, &p.Requests}, {"messages", l.Messages, &p.Messages}, {"bytes", l.Bytes, &p.Bytes}} {
		if limit.given == nil {
			continue
		}
		if *limit.given < 0 {
			return belowZero(limit.field)
		}
		*limit.to = pgtype.Int8{Int64: int64(*limit.given), Valid: true}
	}
	if l.Cost != nil {
		if *l.Cost < 0 {
			return belowZero("cost")
		}
		p.Cost = pgtype.Float8{Float64: *l.Cost, Valid: true}
	}
	return q.q.SetTenantLimits(ctx, p)
}

func belowZero(limit string) error {
	return fault.New(fault.Invalid, "invalid_parameter", limit, "Give 0 for any amount, or more.")
}

// Forget deletes counts that are older than KeepDays.
func (q *Quota) Forget(ctx context.Context) (err error) {
	defer db.Wrap(&err, "quota.Forget")
	return q.q.DeleteTenantDays(ctx, db.DeleteTenantDaysParams{Before: date(q.today().AddDate(0, 0, -KeepDays))})
}

func date(t time.Time) pgtype.Date { return pgtype.Date{Time: t, Valid: true} }

// Spent counts the cost of a call of a model, in a context that access.With made.
func (q *Quota) Spent(ctx context.Context, cost float64) {
	if tenant := access.TenantOf(ctx); tenant != "" {
		q.Add(tenant, Amount{Cost: cost})
	}
}
