package torture

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
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
}

// Run attacks a program for a time, and reports what came of it. A promise that
// is broken is no error but stands in the report. When it returns, all that it
// started is gone.
func Run(ctx context.Context, cfg Config) (_ Report, err error) {
	if cfg.Replica {
		cfg.Histories = 0
	}
	r, err := start(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil { // what it killed says less
			err = ctx.Err()
		}
		return Report{}, fmt.Errorf("torture.Run(seed %d): %w", cfg.Seed, err)
	}
	defer r.stop()
	begin := time.Now()
	whole := ctx
	if cfg.UntilBroken {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		r.report.onViolation(end)
	}
	if err := r.attack(ctx); err != nil && (whole.Err() != nil || ctx.Err() == nil) {
		return Report{}, fmt.Errorf("torture.Run(seed %d): %w", cfg.Seed, err)
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

// start starts Postgres, the links, the model and the servers.
func start(ctx context.Context, cfg Config) (_ *run, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &run{cfg: cfg, report: newRecorder(cfg.Logger), marks: &marks{}, obstacles: &obstacles{}}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	if r.dir, err = os.MkdirTemp(cfg.Dir, "coppice-torture-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(r.dir, 0o711); err != nil { // Postgres runs as somebody else where this runs as root
		return nil, err
	}
	r.postgres = &postgres{dataDir: filepath.Join(r.dir, "data"), log: cfg.Logger}
	if cfg.LoseCommits { // for seconds, and not only for an instant
		r.postgres.parameters = map[string]string{"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}
	}
	if cfg.Workers > 0 {
		if r.postgres.parameters == nil {
			r.postgres.parameters = map[string]string{}
		}
		maps.Copy(r.postgres.parameters, onCitus(r.postgres.dataDir))
	}
	if err := r.postgres.start(ctx); err != nil {
		return nil, err
	}
	if r.bridge, err = newBridge(r.postgres); err != nil {
		return nil, err
	}
	if r.env, err = r.environ(r.bridge.addr()); err != nil {
		return nil, err
	}
	if cfg.Workers > 0 {
		if err := r.distribute(ctx); err != nil {
			return nil, err
		}
	}
	if cfg.Replica {
		if err := r.addReplica(ctx); err != nil {
			return nil, err
		}
	}
	conf, err := pgxpool.ParseConfig(r.postgres.url())
	if err != nil {
		return nil, err
	}
	conf.MaxConns = 6
	conf.ConnConfig.RuntimeParams["application_name"] = "torture"
	if r.admin, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, err
	}
	r.model = newModel(cfg.Seed, cfg.ModelFaults, r.marks, r.report)
	if r.provider, err = newLink("model", r.model.addr()); err != nil {
		return nil, err
	}
	for i := range cfg.Servers {
		if err := r.addProgram(i); err != nil {
			return nil, err
		}
	}
	r.client = newClient(r.programs, r.report)
	r.client.dropping.Store(int32(cfg.Drops))
	r.jobs = newJobs(r.admin, r.report)
	// One after the other, as the first one migrates.
	for _, p := range r.programs {
		go p.supervise()
		if err := r.awaitReady(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := r.addTenants(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// environ is what a program runs with that reaches the database at an address.
func (r *run) environ(database string) ([]string, error) {
	conf, err := pgxpool.ParseConfig(r.postgres.url())
	if err != nil {
		return nil, err
	}
	return append(environment(os.Environ()), "OPENAI_API_KEY=sk-torture", "TZ=UTC",
		fmt.Sprintf("DATABASE_URL=postgres://%s@%s/%s?sslmode=disable", conf.ConnConfig.User, database, conf.ConnConfig.Database)), nil
}

// addProgram prepares a server. The first keeps its name over its starts, and
// so takes up its own jobs; the second has a new one each time, as a container
// has, so that others must take them up.
func (r *run) addProgram(number int) error {
	database, err := newLink(fmt.Sprintf("database %d", number), r.bridge.addr())
	if err != nil {
		return err
	}
	r.databases = append(r.databases, database)
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	name := string(rune('a' + number))
	log, err := os.Create(filepath.Join(r.dir, "server-"+name+".log"))
	if err != nil {
		return err
	}
	env, err := r.environ(database.addr)
	if err != nil {
		return err
	}
	if r.replica != nil {
		env = append(env, "COPPICE_READ_"+strings.Replace(env[len(env)-1], database.addr, r.reads.addr, 1))
	}
	p := &program{
		number: number, name: name, bin: r.cfg.Program, addr: addr, log: log, report: r.report,
		stopping: make(chan struct{}), stopped: make(chan struct{}),
		env: env,
	}
	p.args = func(start int) []string {
		id := "torture-" + name
		if number > 0 {
			id = fmt.Sprintf("torture-%s-%d", name, start)
		}
		return append([]string{"serve", "--addr", addr, "--server-id", id, "--openai-base-url", "http://" + r.provider.addr + "/v1"}, serverFlags...)
	}
	r.programs = append(r.programs, p)
	return nil
}

// serverWindow is what serverFlags leave available for a context, in tokens.
const serverWindow = 1200 - 200

// serverFlags make small windows, so that branches are compacted often, and
// short timeouts, so that faults end within the run.
var serverFlags = []string{
	"--log-format", "json", "--log-level", "warn", "--max-conns", "10",
	"--reply-model", replyModel, "--summary-model", summaryModel, "--titles", "digest", // by which chats are known
	"--model-window", replyModel + "=128000", "--model-window", summaryModel + "=128000",
	"--max-context-tokens", "1200", "--reserved-tokens", "200",
	"--settings", `{"min_fold_tokens": 100, "min_fold_messages": 2}`,
	"--summary-timeout", "3s", "--reply-timeout", "5s", "--reply-compaction-timeout", "5s",
	"--request-timeout", "10s", "--statement-timeout", "8s", "--compaction-timeout", "15s",
}

func (r *run) awaitReady(ctx context.Context, p *program) error {
	deadline := time.Now().Add(readyBound)
	for !isReady(ctx, r.client.http, p.url()) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("server %s is not ready after %s; its log is %s", p.name, readyBound, p.log.Name())
		}
		r.sleep(ctx, 20*time.Millisecond)
	}
	return nil
}

// stop ends all that was started.
func (r *run) stop() {
	for _, p := range r.programs {
		if p.starts.Load() > 0 {
			p.stop()
		} else {
			p.log.Close()
		}
	}
	if r.client != nil {
		r.client.close()
	}
	if r.provider != nil {
		r.provider.close()
	}
	if r.model != nil {
		r.model.close()
	}
	for _, l := range r.databases {
		l.close()
	}
	if r.reads != nil {
		r.reads.close()
	}
	if r.replicaBridge != nil {
		r.replicaBridge.close()
	}
	if r.replica != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.replica.stop(ctx)
	}
	if r.admin != nil {
		r.admin.Close()
	}
	if r.bridge != nil {
		r.bridge.close()
	}
	if r.postgres != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r.postgres.stop(ctx)
		r.stopWorkers(ctx)
	}
	if r.dir == "" {
		return
	}
	if r.cfg.KeepDir {
		r.cfg.Logger.Info("the run's folder is left as it is", "dir", r.dir)
		return
	}
	if err := os.RemoveAll(r.dir); err != nil {
		r.cfg.Logger.Warn("the run's folder could not be removed", "dir", r.dir, "error", err)
	}
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
