package torture

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says what to do. Program must be set; see Defaults for the rest.
type Config struct {
	Program string // path of the coppice binary
	Dir     string // where the run makes its folder; "" for the system's temporary one
	KeepDir bool   // leave the folder, with the servers' logs, when the run is over

	Seed          uint64        // of the order of faults and of the writers' choices
	Duration      time.Duration // under faults, pauses for checks not counted
	Servers       int           // that share the database
	Writers       int           // on the shared conversations
	Conversations int           // that they share at a time
	Kills         int           // of the servers in a minute, and as many of Postgres
	Cuts          int           // of each other kind of fault in a minute
	Workers       int           // of a Citus cluster that the database is distributed over; 0 for plain Postgres
	CheckEvery    time.Duration // between two checks
	UntilBroken   bool          // end as soon as a promise is broken

	// LoseCommits has Postgres acknowledge transactions before they are on disk,
	// so that a kill loses some. It shows that a run finds that.
	LoseCommits bool

	Logger *slog.Logger // what the run does; nil discards it
}

// Defaults are a run of a minute that kills everything some eight times.
func Defaults() Config {
	return Config{Seed: 1, Duration: time.Minute, Servers: 2, Writers: 6, Conversations: 4, Kills: 8, Cuts: 2, CheckEvery: 30 * time.Second}
}

const (
	readyBound    = time.Minute     // a server that isn't ready so long after the last fault is a violation
	quietBound    = time.Minute     // the same of requests, replies and transactions that don't end
	overtimeBound = 3 * time.Minute // a run goes on without faults for so long until it has checked enough
)

// A run is all that one run of the harness has.
type run struct {
	cfg      Config
	began    time.Time
	dir      string
	ends     []func() // what stop does, from the last on
	report   *recorder
	marks    *marks
	model    *model
	postgres *postgres
	workers  []*postgres   // of a Citus cluster
	admin    *pgxpool.Pool // past all links
	servers  []*server
	links    []*link // of each server to the database
	provider *link   // to the model
	http     *http.Client
	tenants  []*tenant
	choice   atomic.Int64
	prying   atomic.Int64

	gate sync.RWMutex // held by each operation; a check holds it alone
	over atomic.Bool  // writers begin nothing more

	mu        sync.Mutex
	shared    []*conversation // that writers work on
	all       []*conversation
	chats     []*chat // all that were ever begun
	pages     []*page
	troubled  int       // faults of the database that are under way
	untilThen time.Time // when the last of these ended
}

// Run attacks a program for a time, and reports what came of it. A promise that
// is broken is no error but stands in the report. When it returns, all that it
// started is gone.
func Run(ctx context.Context, cfg Config) (_ Report, err error) {
	bound := 3*cfg.Duration + 15*time.Minute
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r, err := start(bounded, cfg)
	if err != nil {
		return Report{}, fmt.Errorf("torture.Run(seed %d): %w", cfg.Seed, err)
	}
	attacking, end := context.WithCancel(bounded)
	defer end()
	if cfg.UntilBroken {
		r.report.broken = end
	}
	err = r.attack(attacking)
	r.stop()
	if bounded.Err() != nil {
		r.report.violate("endless", "the run didn't end within %s", bound)
	}
	for _, s := range r.servers {
		if text := s.panics(); text != "" {
			r.report.violate("panic", "server %s: %s", s.name, text)
		}
	}
	r.removeDir()
	report := r.report.report
	if ctx.Err() != nil { // what it caused says less
		err = ctx.Err()
	}
	if err != nil && (ctx.Err() != nil || len(report.Violations) == 0) {
		return Report{}, fmt.Errorf("torture.Run(seed %d): %w", cfg.Seed, err)
	}
	if err == nil {
		report.Missed = r.report.missed()
	}
	report.Seed, report.Began, report.Seconds, report.Conversations = cfg.Seed, r.began, time.Since(r.began).Seconds(), len(r.all)
	return report, nil
}

// rng gives the random numbers of one part of the run, which follow from the
// seed.
func (r *run) rng(part string, number int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", part, number)
	return rand.New(rand.NewPCG(r.cfg.Seed, h.Sum64()))
}

// any is one server or another.
func (r *run) any() int { return int(r.choice.Add(1)) % len(r.servers) }

// attack runs clients and faults, with checks in between, and a last one.
func (r *run) attack(ctx context.Context) error {
	for i := range r.cfg.Conversations {
		r.shared = append(r.shared, r.create(ctx, r.tenants[i%len(r.tenants)]))
	}
	working, stopWork := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stopWork()
	for i := range r.cfg.Writers {
		clients.Go(func() { newWriter(r, r.rng("writer", i)).work(working) })
	}
	for i := range 2 {
		p := &page{writer: newWriter(r, r.rng("page", i))}
		r.pages = append(r.pages, p)
		clients.Go(func() { r.repeat(working, func() { p.turn(working) }) })
	}
	if err := r.faults(ctx); err != nil {
		return err
	}
	for deadline := time.Now().Add(overtimeBound); time.Now().Before(deadline); {
		missed := r.report.missed()
		if len(missed) == 0 {
			break
		}
		r.cfg.Logger.Info("goes on, as it checked too little", "missed", missed)
		sleep(ctx, 3*time.Second)
		if err := r.pause(ctx, false); err != nil {
			return err
		}
	}
	r.over.Store(true)
	return r.pause(ctx, true)
}

// repeat does something until ctx ends, with a rest in between. While a check
// holds the gate, it waits.
func (r *run) repeat(ctx context.Context, do func()) {
	rng := r.rng("rest", int(r.choice.Add(1)))
	for ctx.Err() == nil {
		r.gate.RLock()
		if ctx.Err() == nil && !r.over.Load() {
			do()
		}
		r.gate.RUnlock()
		sleep(ctx, time.Duration(10+rng.IntN(20))*time.Millisecond)
	}
}
