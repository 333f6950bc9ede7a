// Package bench measures the speed of a server beside a floor: the same work
// without the server. The floor takes its turns on the same machine and the same
// database, in the same run. So other load on the machine slows both of them.
//
// The floor of appends, contexts and searches is the SQL that package tree sends
// for the same call. It is recorded once, and sent through pgx without being
// decoded. The floor of a first token is a direct call of the same model. Before
// anything is timed, each floor has to return the same messages as the server, byte
// for byte. A floor that does other work proves nothing.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
)

// Config says what to measure. URL and Serve are required.
type Config struct {
	URL string // of a migrated database without conversations
	// Serve starts a server on the database in its own process. ServeBefore starts
	// one of an earlier program; nil measures none.
	Serve, ServeBefore func(ctx context.Context, settings ...string) (addr string, err error)

	Rounds   int                              // in each of which every variant has its turn
	Messages int                              // that searches look through
	Quick    bool                             // small data and short turns: shows that everything runs
	Remark   func(format string, args ...any) // called as the work goes on
}

// A Report is what was measured.
type Report struct {
	Machine Machine  `json:"machine"`
	Results []Result `json:"results"`
}

// A Machine is where something was measured.
type Machine struct {
	Time     time.Time `json:"time"`
	CPUs     int       `json:"cpus"`
	CPU      string    `json:"cpu"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgres"`
	Fsync    string    `json:"fsync"`
	Load     string    `json:"load"` // averages over 1, 5 and 15 minutes at the start
}

// Parts are the kinds of work that can be measured.
var Parts = []string{"append", "context", "search", "openai"}

// A run is one measurement.
type run struct {
	Config
	slice   time.Duration // length of a turn
	lengths []int         // of the conversations whose next token is awaited
	report  Report
	pool    *pgxpool.Pool
	model   *model // of the servers; nil for none
	addr    string // of the server
	before  string // of the earlier program's server; "" for none
}

// serverConns is how many connections a server opens by default.
const serverConns = 20

// Run measures one part.
func Run(ctx context.Context, cfg Config, part string) (_ Report, err error) {
	r := &run{Config: cfg, slice: 150 * time.Millisecond, lengths: []int{100, 1_000, 10_000}}
	if cfg.Quick {
		r.Rounds, r.slice, r.Messages, r.lengths = 2, time.Millisecond, 2_000, []int{10, 200}
	}
	r.Remark("%s", part)
	defer func() {
		if err != nil {
			err = fmt.Errorf("bench.Run(%s): %w", part, err)
		}
	}()
	if r.pool, err = db.Open(ctx, db.Config{URL: r.URL, MaxConns: 2 * serverConns}); err != nil {
		return r.report, err
	}
	defer r.pool.Close()
	if r.report.Machine, err = describe(ctx, r.pool); err != nil {
		return r.report, err
	}
	var settings []string
	if part == "openai" {
		r.model = newModel()
		defer r.model.Close()
		settings = []string{"--reply-model", modelName, "--openai-base-url", r.model.URL(), "--openai-api-key", "none", "--model-window", modelName + "=128000"}
	}
	if r.addr, err = r.Serve(ctx, settings...); err != nil {
		return r.report, err
	}
	if r.ServeBefore != nil {
		if r.before, err = r.ServeBefore(ctx, settings...); err != nil {
			return r.report, err
		}
	}
	work := map[string]func(context.Context) error{"append": r.append, "context": r.context, "search": r.search, "openai": r.openAI}
	err = work[part](ctx)
	return r.report, err
}

// add puts a result into the report.
func (r *run) add(result Result, err error) error {
	if err == nil {
		r.report.Results = append(r.report.Results, result)
		r.Remark("  %s: %.3f ms, %.2f times its floor", result.Name, result.Variants[0].P50, result.Ratio.Median)
	}
	return err
}

func describe(ctx context.Context, pool *pgxpool.Pool) (m Machine, err error) {
	m = Machine{Time: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	info, _ := os.ReadFile("/proc/cpuinfo") // absent elsewhere than on Linux
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
		}
	}
	err = pool.QueryRow(ctx, "select current_setting('server_version'), current_setting('fsync')").Scan(&m.Postgres, &m.Fsync)
	return m, err
}

// A variant is one way to do the work.
type variant struct {
	name  string
	jobs  []job                                       // one for each worker
	after func() error                                // ends a job of the only worker, and isn't timed; nil for none
	shows func(ctx context.Context) ([]string, error) // the messages that the work returns
}

// A job does one piece of work, and returns the bytes of its answer.
type job func(ctx context.Context) (bytes int, err error)

// A Result compares the ways to do one kind of work.
type Result struct {
	Name     string    `json:"name"`
	Workers  int       `json:"workers"`
	Rounds   int       `json:"rounds"`
	Variants []Variant `json:"variants"` // the server, its floor, and others
	Ratio    Spread    `json:"ratio"`    // of the medians of the server and its floor, in each round
}

// A Variant is what one way came to. Latencies are in milliseconds.
type Variant struct {
	Name      string  `json:"name"`
	Jobs      int     `json:"jobs"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	PerSecond float64 `json:"per_second"`
	Bytes     float64 `json:"bytes"` // of an answer
}

// A Spread is the median of several values, and their quartiles.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Names of variants.
const (
	nameServer = "coppice"
	nameFloor  = "floor"
	nameBefore = "before"
)

// sameMessages fails unless all variants return the same texts.
func sameMessages(ctx context.Context, variants []variant) error {
	want, err := variants[0].shows(ctx)
	if err == nil && len(want) == 0 {
		err = errors.New("no messages were returned")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", variants[0].name, err)
	}
	for _, v := range variants[1:] {
		got, err := v.shows(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s returned other messages: %d of %d bytes, and %s %d of %d bytes",
				v.name, len(got), len(strings.Join(got, "")), variants[0].name, len(want), len(strings.Join(want, "")))
		}
	}
	return nil
}

// compare has the variants do their work by turns, each round in another order,
// after a turn that isn't counted. The second variant is the floor.
func (r *run) compare(ctx context.Context, name string, variants ...variant) (result Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	if err := sameMessages(ctx, variants); err != nil {
		return result, err
	}
	tallies := make([]tally, len(variants))
	for round := range r.Rounds + 1 {
		for turn := range variants {
			i := (round + turn) % len(variants)
			if err := tallies[i].turn(ctx, variants[i], r.slice); err != nil {
				return result, fmt.Errorf("%s: %w", variants[i].name, err)
			}
		}
		if round == 0 { // what is made on first use isn't counted
			clear(tallies)
		}
	}
	result = Result{Name: name, Workers: len(variants[0].jobs), Rounds: r.Rounds}
	for i, v := range variants {
		result.Variants = append(result.Variants, tallies[i].variant(v.name))
	}
	var ratios []float64
	for i, p50 := range tallies[0].p50 {
		ratios = append(ratios, p50/tallies[1].p50[i])
	}
	result.Ratio = spreadOf(ratios)
	return result, nil
}

// A tally is what a variant has come to so far.
type tally struct {
	times     []time.Duration
	p50, rate []float64 // of each round
	bytes     int
}

// turn works for a slice of time, with all workers at once.
func (t *tally) turn(ctx context.Context, v variant, slice time.Duration) error {
	runtime.GC() // clears what the variant before left
	tallies, errs := make([]tally, len(v.jobs)), make([]error, len(v.jobs))
	done := make(chan struct{})
	begin := time.Now()
	for i, do := range v.jobs {
		go func() {
			defer func() { done <- struct{}{} }()
			for first := true; errs[i] == nil && (first || time.Since(begin) < slice); first = false {
				now := time.Now()
				n, err := do(ctx)
				tallies[i].times, tallies[i].bytes = append(tallies[i].times, time.Since(now)), tallies[i].bytes+n
				if err == nil && v.after != nil {
					err = v.after()
				}
				errs[i] = err
			}
		}()
	}
	for range v.jobs {
		<-done
	}
	took := time.Since(begin)
	var times []time.Duration
	for _, one := range tallies {
		times, t.bytes = append(times, one.times...), t.bytes+one.bytes
	}
	t.p50 = append(t.p50, quantile(times, 0.5))
	t.rate = append(t.rate, float64(len(times))/took.Seconds())
	t.times = append(t.times, times...)
	return errors.Join(errs...)
}

func (t *tally) variant(name string) Variant {
	return Variant{
		Name: name, Jobs: len(t.times), P50: quantile(t.times, 0.5), P99: quantile(t.times, 0.99),
		PerSecond: spreadOf(t.rate).Median, Bytes: float64(t.bytes) / float64(len(t.times)),
	}
}

// quantile sorts times, and returns the time in milliseconds that the share q of
// them doesn't exceed.
func quantile(times []time.Duration, q float64) float64 {
	slices.Sort(times)
	return float64(times[min(len(times)-1, int(q*float64(len(times))))]) / float64(time.Millisecond)
}

func spreadOf(values []float64) Spread {
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(q*float64(len(values)-1)+0.5)] }
	return Spread{Median: at(0.5), Low: at(0.25), High: at(0.75)}
}
