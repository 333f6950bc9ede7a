package speed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// A Load is what requests wait at half of what can be done at most.
type Load struct {
	MaxPerSecond float64            `json:"max_per_second"` // requests, with all workers asking as fast as they are answered
	PerSecond    float64            `json:"per_second"`     // what was asked for then
	Seconds      float64            `json:"seconds"`        // for how long, each way
	Ways         map[string]Latency `json:"ways"`
}

// A Latency is from when a request was due to when it was answered, in
// milliseconds: waiting for a free worker counts.
type Latency struct {
	Requests int     `json:"requests"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
}

// mixedWorkers ask at once. Four of five ask for the context of a
// conversation, one answers its last user message once more: so the branches
// stay as long as they are, whichever way is faster.
const mixedWorkers = 32

func (s *session) mixed(ctx context.Context, r *rig) error {
	const length, tail = 150, 50
	conversations, workers := s.size(200, 4), s.size(mixedWorkers, 3)
	names := []string{nameCoppice, nameSQL, namePrepared, nameLoadAll, nameOneRow}
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return err
	}
	places := map[string][]place{}
	heads := map[string][]planted{}
	for _, name := range names {
		for range conversations {
			c := p.chat()
			line, err := c.grow(nil, length)
			if err != nil {
				return err
			}
			if err := c.fold(line, length-1-tail); err != nil {
				return err
			}
			c.end()
			c.head = line[length-1].id
			heads[name] = append(heads[name], planted{c.id, c.head})
			places[name] = append(places[name], place{c.id, line[length-2].id})
		}
	}
	if err := p.close(); err != nil {
		return err
	}
	for _, name := range []string{nameLoadAll, nameOneRow} {
		for _, h := range heads[name] {
			if err := copyToDesigns(ctx, r.pool, h.id); err != nil {
				return err
			}
		}
	}
	var tasks []task
	for i := range workers {
		own := s.corpus.fork(uint64(i))
		tasks = append(tasks, r.mixedTask(own, heads, places, tail))
	}
	c, err := r.compare(ctx, s.pace, "four contexts to one append", tasks)
	if err != nil {
		return err
	}
	s.add(c)
	variants, err := r.variants(ctx, tasks)
	if err != nil {
		return err
	}
	load := &Load{MaxPerSecond: c.Results[0].PerSecond, PerSecond: c.Results[0].PerSecond / 2, Ways: map[string]Latency{}}
	times := map[string][]time.Duration{}
	turns, slice := s.size(5, 1), s.cfg.Slice*20
	load.Seconds = float64(turns) * slice.Seconds()
	for range turns {
		for _, v := range variants[:3] {
			got, err := v.paced(ctx, load.PerSecond, slice, own(s.cfg.Seed))
			if err != nil {
				return err
			}
			times[v.name] = append(times[v.name], got...)
		}
	}
	for name, all := range times {
		load.Ways[name] = Latency{len(all), milliseconds(quantile(all, 0.5)), milliseconds(quantile(all, 0.99)), milliseconds(quantile(all, 1))}
	}
	part := s.report.Parts[s.part]
	part.Load = load
	s.report.Parts[s.part] = part
	s.cfg.Remark("  at %.0f a second: p99 %.1f ms", load.PerSecond, load.Ways[nameCoppice].P99)
	return nil
}

func own(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 3)) }

// mixedTask draws what to do, and where, each time.
func (r *rig) mixedTask(c *corpus, heads map[string][]planted, places map[string][]place, tail int) task {
	at := 0
	draw := func(name string) bool {
		at = c.rand.IntN(len(heads[name]))
		return c.rand.IntN(5) == 0
	}
	appends := r.appendTask(func(name string) *place { return &places[name][at] },
		func() (text, tree.Role) { return c.draw(tree.RoleAssistant), tree.RoleAssistant }, false, true)
	read := func(name string) task { return r.contextTask(heads[name][at], tail, false, true) }
	return task{
		coppice: func(c *client) job {
			add := appends.coppice(c)
			return func(ctx context.Context) (int, error) {
				if draw(nameCoppice) {
					return add(ctx)
				}
				return read(nameCoppice).coppice(c)(ctx)
			}
		},
		sql: func(ctx context.Context) (int, error) {
			if draw(nameSQL) {
				return appends.sql(ctx)
			}
			return read(nameSQL).sql(ctx)
		},
		prepared: func(p *plain) job {
			add := appends.prepared(p)
			return func(ctx context.Context) (int, error) {
				if draw(namePrepared) {
					return add(ctx)
				}
				return read(namePrepared).prepared(p)(ctx)
			}
		},
		loadAll: func(ctx context.Context) (int, error) {
			if draw(nameLoadAll) {
				return appends.loadAll(ctx)
			}
			return read(nameLoadAll).loadAll(ctx)
		},
		oneRow: func(ctx context.Context) (int, error) {
			if draw(nameOneRow) {
				return appends.oneRow(ctx)
			}
			return read(nameOneRow).oneRow(ctx)
		},
	}
}

// paced asks so often a second, at times that don't depend on the answers and
// come as those of independent people do.
func (v variant) paced(ctx context.Context, perSecond float64, during time.Duration, r *rand.Rand) ([]time.Duration, error) {
	due := make(chan time.Time, 1<<16)
	var mu sync.Mutex
	var times []time.Duration
	var failure error
	var wg sync.WaitGroup
	for _, do := range v.jobs {
		wg.Go(func() {
			var own []time.Duration
			for at := range due {
				_, err := do(ctx)
				if err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
					break
				}
				own = append(own, time.Since(at))
			}
			mu.Lock()
			times = append(times, own...)
			mu.Unlock()
		})
	}
	begin := time.Now()
	for next := begin; next.Sub(begin) < during; next = next.Add(time.Duration(r.ExpFloat64() / perSecond * float64(time.Second))) {
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
		}
		// Sleeping too long is the clock's doing, not the server's.
		due <- time.Now()
	}
	close(due)
	wg.Wait()
	return times, failure
}
