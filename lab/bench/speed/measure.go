package speed

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A job does one piece of work, and tells how many bytes its answer had.
type job func(ctx context.Context) (bytes int, err error)

// A variant is one way to do the work that others do as well.
type variant struct {
	name string
	jobs []job // one for each worker
	cost meter // of the process that does the work
	most int   // jobs of a worker in one turn; 0 is as many as there is time for
}

// A pace says how long to measure.
type pace struct {
	rounds int           // each variant has its turn in each
	slice  time.Duration // that a turn takes
}

// A Comparison is what the variants of one piece of work came to.
type Comparison struct {
	Name    string   `json:"name"`    // what was done
	Workers int      `json:"workers"` // at once
	Rounds  int      `json:"rounds"`
	Results []Result `json:"results"` // Coppice's first
}

// A Result is what one variant came to. Latencies are of all its jobs; the
// ratios are medians of the rounds, with the quartiles beside them.
type Result struct {
	Name       string           `json:"name"`
	Jobs       int              `json:"jobs"`
	P50        float64          `json:"p50_ms"`
	P99        float64          `json:"p99_ms"`
	PerSecond  float64          `json:"per_second"`
	Bytes      float64          `json:"bytes"`           // of an answer
	Allocs     float64          `json:"allocations"`     // of a job, in the process that does it
	AllocBytes float64          `json:"allocated_bytes"` // the same
	CPU        float64          `json:"cpu_ms"`          // the same; 0 where that is not the server's
	Ratios     map[string]Ratio `json:"ratios"`          // to the floors, by their names
}

// A Ratio compares a variant with a floor.
type Ratio struct {
	P50       Spread `json:"p50"`        // of the latency: below 1 is faster
	PerSecond Spread `json:"per_second"` // of the throughput: above 1 is faster
}

// A Spread is the middle of several values, and the middle half of them.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// A tally is what a variant has come to so far.
type tally struct {
	times []time.Duration
	p50   []float64 // of each round, in milliseconds
	rate  []float64 // of each round, in jobs a second
	bytes int64
	used  usage
}

// compare has the variants do their work by turns, a slice each and in another
// order each round, after a turn that isn't counted. The variants named in
// floors are what the others are compared with.
func compare(ctx context.Context, p pace, name string, variants []variant, floors ...string) (c Comparison, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	tallies := make([]tally, len(variants))
	for i, v := range variants {
		if err := v.turn(ctx, p.slice, new(tally)); err != nil {
			return c, fmt.Errorf("%s: %w", variants[i].name, err)
		}
	}
	for round := range p.rounds {
		for turn := range variants {
			i := (round + turn) % len(variants)
			if err := variants[i].turn(ctx, p.slice, &tallies[i]); err != nil {
				return c, fmt.Errorf("%s: %w", variants[i].name, err)
			}
		}
	}
	c = Comparison{Name: name, Workers: len(variants[0].jobs), Rounds: p.rounds}
	for i, v := range variants {
		c.Results = append(c.Results, tallies[i].result(v.name))
	}
	for i := range c.Results {
		c.Results[i].Ratios = map[string]Ratio{}
		for j, v := range variants {
			if slices.Contains(floors, v.name) && i != j {
				c.Results[i].Ratios[v.name] = Ratio{
					P50:       spreadOf(quotients(tallies[i].p50, tallies[j].p50)),
					PerSecond: spreadOf(quotients(tallies[i].rate, tallies[j].rate)),
				}
			}
		}
	}
	return c, nil
}

// turn works for a slice of time, with all workers at once.
func (v variant) turn(ctx context.Context, slice time.Duration, t *tally) error {
	runtime.GC() // what the variant before left is not this one's to clear away
	before, err := v.cost.read(ctx)
	if err != nil {
		return err
	}
	type outcome struct {
		times []time.Duration
		bytes int64
		err   error
	}
	outcomes := make([]outcome, len(v.jobs))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, do := range v.jobs {
		wg.Go(func() {
			o := &outcomes[i]
			for now := time.Now(); ; {
				n, err := do(ctx)
				if err != nil {
					o.err = err
					return
				}
				end := time.Now()
				o.times = append(o.times, end.Sub(now))
				o.bytes += int64(n)
				if now = end; now.Sub(begin) >= slice || len(o.times) == v.most {
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	after, err := v.cost.read(ctx)
	if err != nil {
		return err
	}
	var times []time.Duration
	for _, o := range outcomes {
		if o.err != nil {
			return o.err
		}
		times = append(times, o.times...)
		t.bytes += o.bytes
	}
	t.used = t.used.plus(after.minus(before))
	t.p50 = append(t.p50, milliseconds(quantile(times, 0.5)))
	t.rate = append(t.rate, float64(len(times))/took.Seconds())
	t.times = append(t.times, times...)
	return nil
}

func (t *tally) result(name string) Result {
	n := float64(len(t.times))
	return Result{
		Name: name, Jobs: len(t.times),
		P50: milliseconds(quantile(t.times, 0.5)), P99: milliseconds(quantile(t.times, 0.99)),
		PerSecond: spreadOf(t.rate).Median, Bytes: float64(t.bytes) / n,
		Allocs: t.used.allocs / n, AllocBytes: t.used.bytes / n, CPU: 1000 * t.used.cpu / n,
	}
}

// quantile sorts times, and gives the one that the share q of them don't
// exceed.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(len(times)-1, int(q*float64(len(times))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func quotients(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func spreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1)+0.5)] }
	if len(sorted) == 0 {
		return Spread{}
	}
	return Spread{Median: at(0.5), Low: at(0.25), High: at(0.75)}
}
