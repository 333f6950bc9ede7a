package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A fault is one entry of the schedule.
type fault struct {
	at     time.Duration // since the start, pauses for checks not counted
	kind   string
	do     func(r *run, ctx context.Context, f fault) error
	server int
	lasts  time.Duration
}

// schedule works out from the seed what goes wrong when: so many kills a minute
// of the servers and of Postgres, and so many of each other fault.
func schedule(cfg Config, rng *rand.Rand) (all []fault) {
	add := func(perMinute int, kind string, shortest, longest time.Duration, do func(r *run, ctx context.Context, f fault) error) {
		if perMinute == 0 {
			return
		}
		n := max(1, int(float64(perMinute)*cfg.Duration.Minutes()))
		for i := range n {
			at := time.Duration((float64(i) + rng.Float64()) / float64(n) * float64(cfg.Duration))
			lasts := shortest + time.Duration(rng.Int64N(int64(longest-shortest)+1))
			all = append(all, fault{at: at, kind: kind, do: do, server: rng.IntN(max(cfg.Servers, 1)), lasts: lasts})
		}
	}
	const ms = time.Millisecond
	add(cfg.Kills, "server killed", 0, 0, (*run).killServer)
	add(cfg.Kills, "Postgres killed", 0, 300*ms, (*run).killPostgres)
	add(cfg.Kills/4, "Postgres backend killed", 0, 0, (*run).killBackend)
	if cfg.Workers > 0 {
		add(cfg.Kills, "worker killed", 0, 300*ms, (*run).killWorker)
	}
	add(cfg.Cuts, "database link cut", 50*ms, 2000*ms, onDatabase(trouble{cut: true}))
	add(cfg.Cuts, "database link silent", 500*ms, 4000*ms, onDatabase(trouble{silent: true}))
	add(cfg.Cuts, "database link slow", 500*ms, 4000*ms, onDatabase(trouble{delay: 30 * ms}))
	add(cfg.Cuts, "model link cut", 200*ms, 3000*ms, onModel(trouble{cut: true}))
	add(cfg.Cuts, "model link silent", 500*ms, 6000*ms, onModel(trouble{silent: true}))
	add(cfg.Cuts, "model away", 2000*ms, 9000*ms, (*run).awayModel)
	slices.SortFunc(all, func(a, b fault) int { return int(a.at - b.at) })
	return all
}

// faults carries the schedule out, and pauses for checks.
func (r *run) faults(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	failed := make(chan error, 1)
	paused, checked, begin := time.Duration(0), time.Duration(0), time.Now()
	now := func() time.Duration { return time.Since(begin) - paused }
	until := func(at time.Duration) error { // waits, and checks when that is due
		for now() < at {
			sleep(ctx, min(at, checked+r.cfg.CheckEvery)-now())
			select {
			case err := <-failed:
				return err
			default:
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if now() < checked+r.cfg.CheckEvery || now() >= r.cfg.Duration {
				continue
			}
			under.Wait()
			checked = now()
			hold := time.Now()
			if err := r.pause(ctx, false); err != nil {
				return err
			}
			paused += time.Since(hold)
			r.cfg.Logger.Info("checked", "after", now().Round(time.Second), "pause", time.Since(hold).Round(time.Millisecond))
		}
		return nil
	}
	for _, f := range schedule(r.cfg, r.rng("faults", 0)) {
		if err := until(f.at); err != nil {
			return err
		}
		under.Go(func() {
			if err := f.do(r, ctx, f); err != nil && ctx.Err() == nil {
				select {
				case failed <- fmt.Errorf("%s: %w", f.kind, err):
				default:
				}
			}
		})
	}
	return until(r.cfg.Duration)
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
func (r *run) killServer(ctx context.Context, f fault) error {
	for !r.servers[f.server].kill() { // it is being started
		if sleep(ctx, 10*time.Millisecond); ctx.Err() != nil {
			return nil
		}
	}
	r.report.fault(f.kind)
	return nil
}

func (r *run) killPostgres(ctx context.Context, f fault) error { return r.restart(ctx, f, r.postgres) }

// killWorker kills a worker of the Citus cluster.
func (r *run) killWorker(ctx context.Context, f fault) error {
	return r.restart(ctx, f, r.workers[int(f.at/time.Millisecond)%len(r.workers)].postgres)
}

// restart kills a Postgres, and starts it again.
func (r *run) restart(ctx context.Context, f fault, p *postgres) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer r.disturb()()
	if err := p.kill(); err != nil {
		return err
	}
	r.report.fault(f.kind)
	sleep(ctx, f.lasts)
	return p.start(context.WithoutCancel(ctx))
}

// killBackend kills one of Postgres' processes that serve a connection. The main
// process then ends all of them and recovers, without ending itself.
func (r *run) killBackend(ctx context.Context, f fault) error {
	r.postgres.mu.Lock()
	defer r.postgres.mu.Unlock()
	defer r.disturb()()
	var pid int
	err := r.admin.QueryRow(ctx, `select pid from pg_stat_activity where application_name = 'coppice' order by state = 'active' desc, random() limit 1`).Scan(&pid)
	if err != nil || killProcess(pid) != nil {
		return nil // no server is connected just now, or the process has just ended
	}
	r.report.fault(f.kind)
	for deadline := time.Now().Add(readyBound); time.Now().Before(deadline) && ctx.Err() == nil; {
		sleep(ctx, 20*time.Millisecond)
		if r.admin.Ping(ctx) == nil {
			break
		}
	}
	return nil
}

// awayModel has the provider of the models answer nothing but errors, or not at
// all.
func (r *run) awayModel(ctx context.Context, f fault) error {
	r.report.fault(f.kind)
	r.model.outage(f.lasts)
	sleep(ctx, f.lasts)
	return nil
}

func onDatabase(t trouble) func(*run, context.Context, fault) error {
	return func(r *run, ctx context.Context, f fault) error {
		defer r.disturb()()
		return r.spoil(ctx, f, r.links[f.server], t)
	}
}

func onModel(t trouble) func(*run, context.Context, fault) error {
	return func(r *run, ctx context.Context, f fault) error { return r.spoil(ctx, f, r.provider, t) }
}

// spoil has a link go wrong for a time, with one trouble at a time.
func (r *run) spoil(ctx context.Context, f fault, l *link, t trouble) error {
	l.busy.Lock()
	defer l.busy.Unlock()
	l.set(t)
	r.report.fault(f.kind)
	sleep(ctx, f.lasts)
	l.set(trouble{})
	return nil
}
