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

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says what to do. Its tags make it flags of a command.
type Config struct {
	Program string       `kong:"-"` // path of the coppice binary
	Dir     string       `kong:"-"` // where the run makes its folder; "" for the system's temporary one
	Logger  *slog.Logger `kong:"-"` // what the run does

	Keep        bool          `help:"Leave the run's folder, with the logs of the servers."`
	Seed        uint64        `default:"1" placeholder:"N" help:"The seed of the order of faults and of the writers' choices (${default})."`
	Duration    time.Duration `default:"1m" placeholder:"DURATION" help:"Time under faults, without pauses for checks (${default})."`
	Writers     int           `default:"6" placeholder:"N" help:"Writers on the shared conversations (${default})."`
	Kills       int           `default:"8" placeholder:"N" help:"Kills of the servers in a minute, and as many of Postgres (${default})."`
	Cuts        int           `default:"2" placeholder:"N" help:"Faults in a minute of each other kind (${default})."`
	Workers     int           `placeholder:"N" help:"Workers of a Citus cluster that the database is distributed over, which are killed as often as Postgres. Needs Citus beside Postgres. Without it, plain Postgres."`
	UntilBroken bool          `help:"End as soon as a promise is broken."`
	LoseCommits bool          `help:"Have Postgres acknowledge transactions that aren't on disk yet, to see that the run finds what kills then lose."`
}

const (
	servers       = 2               // that share the database
	conversations = 4               // that the writers share at a time
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
	provider *link // to the model
	http     *http.Client
	tenants  []*tenant
	feed     *feed
	choice   atomic.Int64

	gate sync.RWMutex // held by each operation; a check holds it alone
	over atomic.Bool  // writers begin nothing more

	mu     sync.Mutex
	shared []*conversation // that writers work on
	all    map[uuid.UUID]*conversation
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
		r.stop()
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
	report := r.report.report
	if ctx.Err() != nil { // its consequences say less
		err = ctx.Err()
	}
	if err != nil && (ctx.Err() != nil || report.Broken == 0) {
		return Report{}, fmt.Errorf("torture.Run(seed %d): %w", cfg.Seed, err)
	}
	if err == nil {
		report.Missed = r.report.missed()
	}
	report.Seed, report.Seconds, report.Conversations = cfg.Seed, time.Since(r.began).Seconds(), len(r.all)
	return report, nil
}

// rng gives the random numbers of one part of the run, which follow from the seed.
func (r *run) rng(part string, number int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", part, number)
	return rand.New(rand.NewPCG(r.cfg.Seed, h.Sum64()))
}

// number is another one each time.
func (r *run) number() int { return int(r.choice.Add(1)) }

// any is one server or another.
func (r *run) any() *server { return r.servers[r.number()%len(r.servers)] }

// attack runs clients and faults, with checks in between, and a last one.
func (r *run) attack(ctx context.Context) error {
	for i := range conversations {
		r.shared = append(r.shared, r.create(ctx, r.tenants[i%len(r.tenants)]))
	}
	working, stopWork := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stopWork()
	for i := range r.cfg.Writers {
		w := &writer{r, r.rng("writer", i)}
		clients.Go(func() { r.repeat(working, w.work) })
	}
	r.feed = &feed{run: r}
	clients.Go(func() { r.repeat(working, r.feed.follow) })
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
func (r *run) repeat(ctx context.Context, do func(context.Context)) {
	for ctx.Err() == nil {
		r.gate.RLock()
		if ctx.Err() == nil && !r.over.Load() {
			do(ctx)
		}
		r.gate.RUnlock()
		sleep(ctx, time.Duration(10+rand.IntN(20))*time.Millisecond)
	}
}

// atEnd has something done when the run ends, before what was noted earlier.
func (r *run) atEnd(do func()) { r.ends = append(r.ends, do) }
