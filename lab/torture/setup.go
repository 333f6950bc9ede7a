package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A tenant is one of a run's, which share the servers.
type tenant struct{ name, key string }

// start starts Postgres, the links, the model and the servers.
func start(ctx context.Context, cfg Config) (_ *run, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second}
	r := &run{cfg: cfg, began: time.Now(), report: newRecorder(cfg.Logger), marks: &marks{}, http: &http.Client{Transport: transport}}
	defer func() {
		if err != nil {
			r.stop()
			r.removeDir()
		}
	}()
	if r.dir, err = os.MkdirTemp(cfg.Dir, "coppice-torture-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(r.dir, 0o711); err != nil { // where this runs as root, Postgres runs as another user
		return nil, err
	}
	r.postgres = &postgres{dataDir: filepath.Join(r.dir, "data"), parameters: map[string]string{}}
	if cfg.LoseCommits { // for seconds, and not only for an instant
		maps.Copy(r.postgres.parameters, map[string]string{"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"})
	}
	if cfg.Workers > 0 {
		maps.Copy(r.postgres.parameters, onCitus(r.postgres.dataDir))
	}
	r.atEnd(func() { r.postgres.stop(cfg.Logger) })
	if err := r.postgres.start(ctx); err != nil {
		return nil, err
	}
	if cfg.Workers > 0 {
		if err := r.distribute(ctx); err != nil {
			return nil, err
		}
	}
	conf, err := pgxpool.ParseConfig(r.postgres.server.URL())
	if err != nil {
		return nil, err
	}
	conf.MaxConns = 4
	conf.ConnConfig.RuntimeParams["application_name"] = "torture"
	if r.admin, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, err
	}
	r.atEnd(r.admin.Close)
	const faultyModel = 15 // requests in a hundred
	r.model = newModel(cfg.Seed, faultyModel, r.marks, r.report)
	r.atEnd(r.model.server.Close)
	if r.provider, err = r.newLink(func() (net.Conn, error) { return net.Dial("tcp", r.model.addr()) }); err != nil {
		return nil, err
	}
	for i := range cfg.Servers {
		s, err := r.addServer(i)
		if err != nil {
			return nil, err
		}
		serving, end := context.WithCancel(context.WithoutCancel(ctx))
		s.running.Go(func() { s.supervise(serving) })
		r.atEnd(func() { end(); s.running.Wait(); s.log.Close() })
		if err := r.awaitReady(ctx, s); err != nil { // one after the other, as the first one migrates
			return nil, err
		}
	}
	r.atEnd(r.http.CloseIdleConnections)
	for _, name := range []string{"north", "south", "west"} {
		out, err := r.command(ctx, "keys", "create", "--json", "--tenant", name, "torture")
		if err != nil {
			return nil, err
		}
		t := &tenant{name: name}
		if err := json.Unmarshal(out, &struct{ Key *string }{&t.key}); err != nil || t.key == "" {
			return nil, fmt.Errorf("coppice keys create printed %q", out)
		}
		r.tenants = append(r.tenants, t)
	}
	return r, nil
}

// command runs the program as an operator does, past all links.
func (r *run) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.cfg.Program, args...)
	cmd.Env = append(environment(), "DATABASE_URL="+r.postgres.server.URL())
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("coppice %s: %w", args[0], err)
	}
	return out, nil
}

// addServer prepares a server. The first keeps its name over its starts, and so
// takes up its own jobs; the others have a new one each time, as containers
// have, so that another server must take their jobs up.
func (r *run) addServer(number int) (*server, error) {
	database, err := r.newLink(r.postgres.dial)
	if err != nil {
		return nil, err
	}
	r.links = append(r.links, database)
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	name := string(rune('a' + number))
	log, err := os.Create(filepath.Join(r.dir, "server-"+name+".log"))
	if err != nil {
		return nil, err
	}
	conf := r.admin.Config().ConnConfig
	url := fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", conf.User, database.addr(), conf.Database)
	s := &server{
		name: name, bin: r.cfg.Program, addr: addr, log: log,
		env: append(environment(), "OPENAI_API_KEY=sk-torture", "TZ=UTC", "DATABASE_URL="+url),
	}
	s.args = func(start int) []string {
		id := "torture-" + name
		if number > 0 {
			id = fmt.Sprintf("torture-%s-%d", name, start)
		}
		return append([]string{"serve", "--addr", addr, "--server-id", id, "--openai-base-url", "http://" + r.provider.addr() + "/v1"}, serverFlags...)
	}
	r.servers = append(r.servers, s)
	return s, nil
}

// serverFlags make small windows, so that branches are compacted often, and
// short timeouts, so that faults end within the run.
var serverFlags = []string{
	"--log-format", "json", "--log-level", "warn", "--max-conns", "10",
	"--reply-model", replyModel, "--summary-model", summaryModel, "--titles", "digest",
	"--model-window", replyModel + "=128000", "--model-window", summaryModel + "=128000",
	"--max-context-tokens", "1200", "--reserved-tokens", "200",
	"--settings", `{"min_fold_tokens": 100, "min_fold_messages": 2, "keep_user_cap_tokens": 60}`,
	"--summary-timeout", "3s", "--reply-timeout", "8s", "--reply-compaction-timeout", "5s",
	"--request-timeout", "10s", "--statement-timeout", "8s", "--compaction-timeout", "15s",
}

// awaitReady waits until a server is ready.
func (r *run) awaitReady(ctx context.Context, s *server) error {
	for deadline := time.Now().Add(readyBound); !s.isReady(ctx, r.http); sleep(ctx, 20*time.Millisecond) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("server %s is not ready after %s; its log is %s", s.name, readyBound, s.log.Name())
		}
	}
	return nil
}

// atEnd has something done when the run ends, before what was noted earlier.
func (r *run) atEnd(do func()) { r.ends = append(r.ends, do) }

// stop ends all that was started.
func (r *run) stop() {
	for _, do := range slices.Backward(r.ends) {
		do()
	}
	r.ends = nil
}

func (r *run) removeDir() {
	if r.dir == "" {
		return
	}
	if r.cfg.KeepDir {
		r.cfg.Logger.Warn("the run's folder is left as it is", "dir", r.dir)
	} else if err := os.RemoveAll(r.dir); err != nil {
		r.cfg.Logger.Warn("the run's folder could not be removed", "dir", r.dir, "error", err)
	}
}
