package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A fault is something that goes wrong for a time, and is well again when do
// returns.
type fault struct {
	kind     string
	perMin   int
	longest  time.Duration
	database bool // of the database, or the way to it
	do       func(r *run, ctx context.Context, server int, lasts time.Duration) error
}

// faultKinds are the faults of a run, in two groups. Of each group one fault at a
// time is under way.
func faultKinds(cfg Config) (kills, cuts []fault) {
	kills = []fault{
		{"server killed", cfg.Kills, 0, false, (*run).killServer},
		{"Postgres killed", cfg.Kills, 300 * time.Millisecond, true, func(r *run, ctx context.Context, _ int, lasts time.Duration) error {
			return r.postgres.restart(ctx, lasts)
		}},
	}
	if cfg.Kills > 0 {
		kills = append(kills, fault{"Postgres backend killed", max(1, cfg.Kills/4), 0, true, (*run).killBackend})
	}
	if cfg.Workers > 0 {
		kills = append(kills, fault{"worker of Citus killed", cfg.Kills, 300 * time.Millisecond, true, func(r *run, ctx context.Context, _ int, lasts time.Duration) error {
			return r.workers[int(r.choice.Add(1))%len(r.workers)].restart(ctx, lasts)
		}})
	}
	onDatabase := func(t trouble) func(*run, context.Context, int, time.Duration) error {
		return func(r *run, ctx context.Context, server int, lasts time.Duration) error {
			return r.links[server].spoil(ctx, t, lasts)
		}
	}
	onModel := func(t trouble) func(*run, context.Context, int, time.Duration) error {
		return func(r *run, ctx context.Context, _ int, lasts time.Duration) error {
			return r.provider.spoil(ctx, t, lasts)
		}
	}
	return kills, []fault{
		{"database link cut", cfg.Cuts, 2 * time.Second, true, onDatabase(trouble{cut: true})},
		{"database link silent", cfg.Cuts, 4 * time.Second, true, onDatabase(trouble{silent: true})},
		{"database link slow", cfg.Cuts, 4 * time.Second, true, onDatabase(trouble{delay: 30 * time.Millisecond})},
		{"model link cut", cfg.Cuts, 3 * time.Second, false, onModel(trouble{cut: true})},
		{"model link silent", cfg.Cuts, 6 * time.Second, false, onModel(trouble{silent: true})},
		{"model away", cfg.Cuts, 9 * time.Second, false, func(r *run, ctx context.Context, _ int, lasts time.Duration) error {
			r.model.away.Store(true)
			defer r.model.away.Store(false)
			sleep(ctx, lasts)
			return nil
		}},
	}
}

// faults has things go wrong for the run's duration, and pauses for checks.
func (r *run) faults(ctx context.Context) error {
	kills, cuts := faultKinds(r.cfg)
	rngs := []*rand.Rand{r.rng("kills", 0), r.rng("cuts", 0)}
	for left := r.cfg.Duration; left > 0; left -= r.cfg.CheckEvery {
		round, end := context.WithTimeout(ctx, min(left, r.cfg.CheckEvery))
		var hands sync.WaitGroup
		failed := make([]error, 2)
		for i, group := range [][]fault{kills, cuts} {
			hands.Go(func() { failed[i] = r.handle(round, ctx, group, rngs[i]) })
		}
		hands.Wait()
		end()
		for _, err := range failed {
			if err != nil && ctx.Err() == nil {
				return err
			}
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
		f, server := bag[rng.IntN(len(bag))], rng.IntN(len(r.servers))
		end := func() {}
		if f.database {
			end = r.disturb()
		}
		err := f.do(r, ctx, server, time.Duration(rng.Int64N(int64(f.longest)+1)))
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", f.kind, err)
		}
		r.report.fault(f.kind)
		sleep(round, time.Until(next))
	}
	<-round.Done()
	return nil
}

// disturb notes a fault of the database that is under way, until end is called.
func (r *run) disturb() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubled++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.troubled--
		r.untilThen = time.Now()
	}
}

// undisturbed tells whether the database was well for so long.
func (r *run) undisturbed(since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.troubled == 0 && time.Since(r.untilThen) > since
}

// killServer kills a server. Its supervisor starts it again.
func (r *run) killServer(ctx context.Context, server int, _ time.Duration) error {
	for !r.servers[server].kill() && ctx.Err() == nil { // it is being started
		sleep(ctx, 10*time.Millisecond)
	}
	return nil
}

// killBackend kills one of Postgres' processes that serve a connection. The main
// process then ends all of them and recovers, without ending itself.
func (r *run) killBackend(ctx context.Context, _ int, _ time.Duration) error {
	var pid int
	err := r.admin.QueryRow(ctx, `select pid from pg_stat_activity where application_name = 'coppice' order by state = 'active' desc, random() limit 1`).Scan(&pid)
	if err != nil || killProcess(pid) != nil {
		return nil // no server is connected just now, or the process has just ended
	}
	for deadline := time.Now().Add(readyBound); time.Now().Before(deadline) && ctx.Err() == nil; {
		sleep(ctx, 20*time.Millisecond)
		if r.admin.Ping(ctx) == nil {
			break
		}
	}
	return nil
}
