package torture

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

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
