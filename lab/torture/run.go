package torture

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A run is all that one run of the harness has.
type run struct {
	cfg           Config
	dir           string
	report        *recorder
	marks         *marks
	postgres      *postgres
	bridge        *bridge
	replica       *postgres // nil without one
	replicaBridge *bridge
	reads         *link // of all programs to the replica
	programs      []*program
	databases     []*link // of each program
	provider      *link   // to the model
	model         *model
	admin         *pgxpool.Pool // past all links
	client        *client
	obstacles     *obstacles
	jobs          *jobs
	tenants       []*tenant
	intrusions    intrusionTurn
	workers       []*worker
	env           []string // of commands, which reach the database past all links

	gate     sync.RWMutex // held by each operation; a check holds it alone
	over     atomic.Bool  // writers begin nothing more
	created  atomic.Int64
	choice   atomic.Int64
	checking sync.WaitGroup // histories

	mu        sync.Mutex
	shared    []*conversation // that writers work on
	all       []*conversation
	histories []*history
	chats     []*openaiChat // all that were ever begun
	pages     []*page
	feeds     []*feed
	desks     []*desk
}

// Run attacks a program for a time, and reports what came of it. A promise that
// is broken is no error but stands in the report. When it returns, all that it
// started is gone.
func Run(ctx context.Context, cfg Config) (_ Report, err error) {
	if cfg.Replica {
		cfg.Histories = 0
	}
	whole := ctx
	failed := func(err error) (Report, error) {
		if whole.Err() != nil { // what it killed says less
			err = whole.Err()
		}
		return Report{}, fmt.Errorf("torture.Run(seed %d): %w", cfg.Seed, err)
	}
	r, err := start(ctx, cfg)
	if err != nil {
		return failed(err)
	}
	defer r.stop()
	begin := time.Now()
	if cfg.UntilBroken {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		r.report.onViolation(end)
	}
	if err := r.attack(ctx); err != nil && (whole.Err() != nil || ctx.Err() == nil) {
		return failed(err)
	}
	report := r.report.finish()
	report.Seed, report.Writers = cfg.Seed, cfg.Writers
	report.Began, report.Seconds = begin, time.Since(begin).Seconds()
	report.Conversations = len(r.all)
	report.Missed = report.missed(cfg)
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
func (r *run) any() int { return int(r.choice.Add(1)) % len(r.programs) }

func (r *run) register(c *conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c)
}

// attack runs writers and faults, with checks in between, and a last one.
func (r *run) attack(ctx context.Context) error {
	for i := range r.cfg.Conversations {
		r.shared = append(r.shared, r.create(ctx, r.tenants[i%len(r.tenants)], true))
	}
	for i := range r.cfg.Histories {
		r.histories = append(r.histories, newHistory(r.create(ctx, r.tenants[i%len(r.tenants)], false), treeAnswer{}))
	}
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stopWork()
	for _, p := range r.programs {
		workers.Go(func() { p.monitor(working, r.obstacles) })
	}
	workers.Go(func() { r.jobs.watch(working) })
	for _, t := range r.tenants {
		workers.Go(func() { r.locksmith(working, t) })
	}
	for i := range r.cfg.Writers {
		w := &writer{run: r, rng: r.rng("writer", i), at: map[*conversation]uuid.UUID{}}
		workers.Go(func() { w.work(working) })
	}
	for i := range r.cfg.Histories * r.cfg.HistoryWriters {
		w := &historyWriter{run: r, number: i, rng: r.rng("history writer", i), slot: i % r.cfg.Histories}
		workers.Go(func() { w.work(working) })
	}
	r.addPages()
	for _, p := range r.pages {
		workers.Go(func() { p.work(working) })
	}
	r.addFeeds()
	for _, f := range r.feeds {
		workers.Go(func() { f.work(working) })
	}
	if err := r.addDesks(ctx); err != nil {
		return err
	}
	for _, d := range r.desks {
		workers.Go(func() { d.work(working) })
	}
	if r.cfg.Soak {
		workers.Go(func() { r.sampler(working) })
	}
	if err := r.faults(ctx); err != nil {
		return err
	}
	if err := r.overtime(ctx); err != nil {
		return err
	}
	r.over.Store(true)
	if err := r.pause(ctx, true); err != nil {
		return err
	}
	r.jobs.await(ctx, r.cfg.JobWait)
	r.countHealed(ctx)
	r.countReads(ctx)
	stopWork()
	workers.Wait()
	r.checking.Wait()
	return nil
}

// exit notes that a server ended by itself. While it can't reach its database,
// that is what it should do.
func (r *recorder) exit(p *program, after time.Duration, err error) {
	text := err.Error()
	reason := "something else"
	for _, known := range []string{"panic: ", "doesn't answer", "refuses the connection", "was shut down", "the connection to the database broke", "address already in use"} {
		if strings.Contains(text, known) {
			reason = known
			break
		}
	}
	r.count(func(report *Report) { report.Exits[reason]++ })
	r.log.Info("a server ended", "server", p.name, "after", after, "error", text)
	if reason == "panic: " || p.ready.Load() {
		r.violate("ended", "server %s ended by itself after %s: %s", p.name, after, text)
	}
}

func (r *recorder) finish() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

// errNotQuiet is of a run whose servers don't come to rest.
var errNotQuiet = errors.New("what was under way didn't end")
