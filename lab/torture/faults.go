package torture

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// A fault is one entry of the schedule.
type fault struct {
	at     time.Duration // since the start, pauses for checks not counted
	kind   string
	do     func(r *run, ctx context.Context, f fault) error
	server int
	lasts  time.Duration
	much   int // how slow, in milliseconds; how narrow, in kilobytes a second
}

// schedule works out from the seed what goes wrong when: so many kills of the
// program and of Postgres, and so many of each other fault, spread over the
// time.
func schedule(cfg Config, rng *rand.Rand) (all []fault) {
	add := func(n int, kind string, shortest, longest time.Duration, do func(r *run, ctx context.Context, f fault) error) {
		for i := range n {
			at := time.Duration((float64(i) + rng.Float64()) / float64(n) * float64(cfg.Duration))
			lasts := shortest + time.Duration(rng.Int64N(int64(longest-shortest)+1))
			all = append(all, fault{at: at, kind: kind, do: do, server: rng.IntN(max(cfg.Servers, 1)), lasts: lasts, much: 5 + rng.IntN(120)})
		}
	}
	const ms = time.Millisecond
	add(cfg.Kills, "program killed", 0, 0, (*run).killProgram)
	add(cfg.Kills, "Postgres killed", 0, 300*ms, (*run).killPostgres)
	add(cfg.Kills/4, "Postgres backend killed", 0, 0, (*run).killBackend)
	if cfg.Workers > 0 {
		add(cfg.Kills, "worker killed", 0, 300*ms, (*run).killWorker)
		add(cfg.Moves, "shard moved", 0, 0, (*run).moveShard)
	}
	add(cfg.Cuts, "program frozen", 300*ms, 8000*ms, (*run).freezeProgram)
	add(cfg.Cuts, "database link cut", 100*ms, 2000*ms, onDatabase((*link).cut))
	add(cfg.Cuts, "database link reset", 50*ms, 500*ms, onDatabase((*link).reset))
	add(cfg.Cuts, "database link silent", 500*ms, 4000*ms, onDatabase((*link).silence))
	add(cfg.Cuts, "database link slow", 500*ms, 4000*ms, func(r *run, ctx context.Context, f fault) error {
		return r.spoil(ctx, f, r.databases[f.server], func(l *link) error { return l.slow(f.much) })
	})
	add(cfg.Cuts, "database link narrow", 500*ms, 4000*ms, func(r *run, ctx context.Context, f fault) error {
		return r.spoil(ctx, f, r.databases[f.server], func(l *link) error { return l.narrow(f.much) })
	})
	add(cfg.Cuts, "model link cut", 200*ms, 3000*ms, onModel((*link).cut))
	add(cfg.Cuts, "model link silent", 500*ms, 6000*ms, onModel((*link).silence))
	add(cfg.Cuts, "model link slow", 500*ms, 5000*ms, func(r *run, ctx context.Context, f fault) error {
		return r.spoil(ctx, f, r.provider, func(l *link) error { return l.slow(f.much * 5) })
	})
	add(cfg.Cuts, "provider away", 2000*ms, 9000*ms, (*run).awayProvider)
	if cfg.Replica {
		add(cfg.Kills, "replica killed", 0, 3000*ms, (*run).killReplica)
		add(cfg.Kills/2, "replica paused", 500*ms, 4000*ms, (*run).pauseReplica)
		add(cfg.Cuts, "replica link silent", 500*ms, 4000*ms, func(r *run, ctx context.Context, f fault) error { return r.spoil(ctx, f, r.reads, (*link).silence) })
		add(cfg.Cuts, "replica link cut", 100*ms, 2000*ms, func(r *run, ctx context.Context, f fault) error { return r.spoil(ctx, f, r.reads, (*link).cut) })
	}
	add(cfg.Fills, "pools filled", 300*ms, 2500*ms, (*run).fillPools)
	add(cfg.Fills, "clients dropped", 300*ms, 1500*ms, (*run).dropClients)
	slices.SortFunc(all, func(a, b fault) int { return int(a.at - b.at) })
	return all
}

// faults carries the schedule out, and pauses for checks.
func (r *run) faults(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	failed := make(chan error, 1)
	paused, checked := time.Duration(0), time.Duration(0)
	begin := time.Now()
	now := func() time.Duration { return time.Since(begin) - paused }
	until := func(at time.Duration) error { // waits, and checks when that is due
		for {
			wait := min(at-now(), checked+r.cfg.CheckEvery-now())
			r.sleep(ctx, wait)
			select {
			case err := <-failed:
				return err
			default:
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if now() >= checked+r.cfg.CheckEvery && now() < r.cfg.Duration {
				under.Wait()
				checked = now()
				hold := time.Now()
				if err := r.pause(ctx, false); err != nil {
					return err
				}
				paused += time.Since(hold)
				r.cfg.Logger.Info("checked", "after", now().Round(time.Second), "pause", time.Since(hold).Round(time.Millisecond), "violations", len(r.report.finish().Violations))
			}
			if now() >= at {
				return nil
			}
		}
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

// killProgram kills a server. Its supervisor starts it again.
func (r *run) killProgram(ctx context.Context, f fault) error {
	p := r.programs[f.server]
	end := r.obstacles.begin(f.kind, f.server)
	defer end()
	generation := p.generation()
	id := p.args(generation)[4]
	for !p.kill() { // it is being started
		r.sleep(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return nil
		}
	}
	r.report.fault(f.kind)
	r.jobs.interrupt(ctx, id)
	for p.generation() == generation && ctx.Err() == nil {
		r.sleep(ctx, time.Millisecond)
	}
	return nil
}

// awayProvider has the provider of the models answer nothing but errors, or not at
// all: no branch that fits may lose messages to a digest.
func (r *run) awayProvider(ctx context.Context, f fault) error {
	r.report.fault(f.kind)
	r.model.outage(f.lasts)
	r.sleep(ctx, f.lasts)
	return nil
}

// freezeProgram has a server stand still, with its locks and leaderships, and go
// on as if nothing had been.
func (r *run) freezeProgram(ctx context.Context, f fault) error {
	end := r.obstacles.begin(f.kind, f.server)
	defer end()
	thaw, ok := r.programs[f.server].freeze()
	if !ok {
		return nil
	}
	defer thaw()
	r.report.fault(f.kind)
	r.sleep(ctx, f.lasts)
	return nil
}

// killPostgres kills Postgres, and starts it again.
func (r *run) killPostgres(ctx context.Context, f fault) error {
	r.postgres.mu.Lock()
	defer r.postgres.mu.Unlock()
	end := r.obstacles.begin(f.kind, everyServer)
	defer end()
	r.jobs.interrupt(ctx, "")
	if err := r.postgres.kill(); err != nil {
		return err
	}
	r.report.fault(f.kind)
	r.sleep(ctx, f.lasts)
	begin := time.Now()
	err := r.postgres.start(context.WithoutCancel(ctx))
	r.report.count(func(p *Report) { p.Ready["(Postgres itself)"] = p.Ready["(Postgres itself)"].with(time.Since(begin)) })
	return err
}

// killBackend kills one of Postgres' processes that serve a connection. The
// postmaster then ends all of them and recovers, without ending itself.
func (r *run) killBackend(ctx context.Context, f fault) error {
	r.postgres.mu.Lock()
	defer r.postgres.mu.Unlock()
	end := r.obstacles.begin(f.kind, everyServer)
	defer end()
	r.jobs.interrupt(ctx, "")
	var pid int
	err := r.admin.QueryRow(ctx, `select pid from pg_stat_activity where application_name = 'coppice' order by state = 'active' desc, random() limit 1`).Scan(&pid)
	if err != nil {
		return nil // no server is connected just now
	}
	if err := killProcess(pid); err != nil {
		return nil // it has just ended
	}
	r.report.fault(f.kind)
	deadline := time.Now().Add(readyBound)
	for time.Now().Before(deadline) && ctx.Err() == nil {
		r.sleep(ctx, 20*time.Millisecond)
		if err := r.admin.Ping(ctx); err == nil {
			break
		}
	}
	return nil
}

func onDatabase(spoil func(*link) error) func(*run, context.Context, fault) error {
	return func(r *run, ctx context.Context, f fault) error { return r.spoil(ctx, f, r.databases[f.server], spoil) }
}

func onModel(spoil func(*link) error) func(*run, context.Context, fault) error {
	return func(r *run, ctx context.Context, f fault) error { return r.spoil(ctx, f, r.provider, spoil) }
}

// spoil has a link go wrong for a time. One thing at a time can be wrong with
// it.
func (r *run) spoil(ctx context.Context, f fault, l *link, how func(*link) error) error {
	l.busy.Lock()
	defer l.busy.Unlock()
	if l != r.provider && l != r.reads {
		end := r.obstacles.begin(f.kind, f.server)
		defer end()
	}
	if err := how(l); err != nil {
		return err
	}
	r.report.fault(f.kind)
	r.sleep(ctx, f.lasts)
	return l.mend()
}

// fillPools holds the locks of all conversations that are worked on, so that
// writes wait, and sends reads on top, until the servers have no connection
// left.
func (r *run) fillPools(ctx context.Context, f fault) error {
	tx, err := r.admin.Begin(ctx)
	if err != nil {
		return nil // Postgres is down, which is worse
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // where it isn't over already
	r.mu.Lock()
	shared := slices.Clone(r.shared)
	r.mu.Unlock()
	var ids []uuid.UUID
	for _, c := range shared {
		ids = append(ids, c.id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range ids { // one by one, as Citus locks no rows of several shards
		if _, err := tx.Exec(ctx, `select id from conversations where id = $1 for update`, id); err != nil {
			return nil
		}
	}
	r.report.fault(f.kind)
	end := r.obstacles.begin(f.kind, everyServer)
	defer end()
	var crowd sync.WaitGroup
	defer crowd.Wait()
	for i := range 40 {
		c := shared[i%len(shared)]
		crowd.Go(func() {
			title := fmt.Sprintf("crowd %d", i)
			c.mu.Lock()
			c.mayHave(title)
			body := retitled(c.origin, title)
			c.mu.Unlock()
			r.as(c).do(ctx, nil, i%len(r.programs), http.MethodPatch, r.path(c), body, nil) // waits for the lock
		})
	}
	r.sleep(ctx, f.lasts)
	_ = tx.Rollback(context.WithoutCancel(ctx)) // before the crowd is waited for, which waits for this
	return nil
}

// dropClients has most clients go away before their answers.
func (r *run) dropClients(ctx context.Context, f fault) error {
	r.report.fault(f.kind)
	r.client.dropping.Add(40)
	defer r.client.dropping.Add(-40)
	r.sleep(ctx, f.lasts)
	return nil
}
