package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A fault is something that goes wrong for a time, and is well again when do
// returns.
type fault struct {
	kind    string
	perMin  int
	longest time.Duration
	do      func(ctx context.Context, s *server, lasts time.Duration) error
}

// faultKinds are the faults of a run, in two groups. Of each group one fault at a
// time is under way.
func (r *run) faultKinds() (kills, cuts []fault) {
	kill := func(which ...*postgres) func(context.Context, *server, time.Duration) error {
		return func(ctx context.Context, _ *server, _ time.Duration) error {
			return which[r.number()%len(which)].kill(ctx)
		}
	}
	spoil := func(which func(*server) *link, t trouble) func(context.Context, *server, time.Duration) error {
		return func(ctx context.Context, s *server, lasts time.Duration) error { return which(s).spoil(ctx, t, lasts) }
	}
	toDatabase := func(s *server) *link { return s.database }
	toModel := func(*server) *link { return r.provider }
	kills = []fault{
		{"server killed", r.cfg.Kills, 0, func(_ context.Context, s *server, _ time.Duration) error {
			_ = s.process.Load().Kill() // where it has ended already, it is as dead
			return nil
		}},
		{"Postgres killed", r.cfg.Kills, 0, kill(r.postgres)},
	}
	if r.cfg.Workers > 0 {
		kills = append(kills, fault{"worker of Citus killed", r.cfg.Kills, 0, kill(r.workers...)})
	}
	return kills, []fault{
		{"database link cut", r.cfg.Cuts, 2 * time.Second, spoil(toDatabase, cut)},
		{"database link silent", r.cfg.Cuts, 4 * time.Second, spoil(toDatabase, silent)},
		{"model link cut", r.cfg.Cuts, 3 * time.Second, spoil(toModel, cut)},
		{"model link silent", r.cfg.Cuts, 6 * time.Second, spoil(toModel, silent)},
		{"model away", r.cfg.Cuts, 9 * time.Second, func(ctx context.Context, _ *server, lasts time.Duration) error {
			r.model.away.Store(true)
			defer r.model.away.Store(false)
			sleep(ctx, lasts)
			return nil
		}},
	}
}

// faults has things go wrong for the run's duration, and pauses for checks.
func (r *run) faults(ctx context.Context) error {
	kills, cuts := r.faultKinds()
	rngs := []*rand.Rand{r.rng("kills", 0), r.rng("cuts", 0)}
	for left, most := r.cfg.Duration, min(r.cfg.Duration/2, 30*time.Second); left > 0; left -= most {
		round, end := context.WithTimeout(ctx, min(left, most))
		var hands sync.WaitGroup
		failed := make([]error, 2)
		for i, group := range [][]fault{kills, cuts} {
			hands.Go(func() { failed[i] = r.handle(round, ctx, group, rngs[i]) })
		}
		hands.Wait()
		end()
		if err := errors.Join(failed...); err != nil && ctx.Err() == nil {
			return err
		}
		began := time.Now()
		if err := r.pause(ctx, false); err != nil {
			return err
		}
		r.cfg.Logger.Info("checked", "left", left, "pause", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// handle has one fault after the other go wrong while a round lasts. A fault that
// has begun ends as it should.
func (r *run) handle(round, ctx context.Context, group []fault, rng *rand.Rand) error {
	var bag []fault // each as often as in a minute
	for _, f := range group {
		for range f.perMin {
			bag = append(bag, f)
		}
	}
	for len(bag) > 0 && round.Err() == nil {
		next := time.Now().Add(time.Duration(rng.Int64N(int64(2*time.Minute) / int64(len(bag)))))
		f, server := bag[rng.IntN(len(bag))], r.servers[rng.IntN(len(r.servers))]
		if err := f.do(ctx, server, time.Duration(rng.Int64N(int64(f.longest)+1))); err != nil {
			return fmt.Errorf("%s: %w", f.kind, err)
		}
		r.report.fault(f.kind)
		sleep(round, time.Until(next))
	}
	<-round.Done()
	return nil
}
