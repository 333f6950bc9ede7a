package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/lab/product"
)

// A tenant is one of a run's, which share the servers. Two of them are people of one
// tenant, whose conversations are private: they see of each other what tenants see.
type tenant struct{ name, key string }

// start starts Postgres, the links, the model and the servers. stop ends what was
// started, also after an error.
func start(ctx context.Context, cfg Config) (_ *run, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second}
	r := &run{cfg: cfg, began: time.Now(), report: newRecorder(cfg.Logger), marks: &marks{}, all: map[uuid.UUID]*conversation{}, http: &http.Client{Transport: transport}}
	if r.dir, err = os.MkdirTemp(cfg.Dir, "coppice-torture-"); err != nil {
		return r, err
	}
	if err := os.Chmod(r.dir, 0o711); err != nil { // where this runs as root, Postgres runs as another user
		return r, err
	}
	parameters := map[string]string{}
	if cfg.LoseCommits { // for seconds, and not only for an instant
		parameters = map[string]string{"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}
	}
	if r.postgres, err = r.startPostgres(ctx, "data", parameters); err != nil {
		return r, err
	}
	if cfg.Workers > 0 {
		if err := r.distribute(ctx); err != nil {
			return r, err
		}
	}
	if r.admin, err = pgxpool.New(ctx, r.postgres.server.URL()+"&application_name=torture"); err != nil {
		return r, err
	}
	r.atEnd(r.admin.Close)
	r.model = newModel(r)
	r.atEnd(r.model.server.Close)
	model := strings.TrimSuffix(strings.TrimPrefix(r.model.server.URL(), "http://"), "/v1")
	if r.provider, err = r.newLink(func() (net.Conn, error) { return net.Dial("tcp", model) }); err != nil {
		return r, err
	}
	for i := range servers {
		if err := r.addServer(ctx, i); err != nil {
			return r, err
		}
	}
	r.atEnd(r.http.CloseIdleConnections)
	for _, name := range []string{"north", "south", "west/ada", "west/ben"} {
		id, user, _ := strings.Cut(name, "/")
		out, err := r.command(ctx, "keys", "create", "--json", "--tenant", id, "--user", user, "torture")
		if err != nil {
			return r, err
		}
		t := &tenant{name: name}
		if err := json.Unmarshal(out, &struct{ Key *string }{&t.key}); err != nil || t.key == "" {
			return r, fmt.Errorf("coppice keys create printed %q", out)
		}
		r.tenants = append(r.tenants, t)
	}
	return r, nil
}

// command runs the program as an operator does, past all links.
func (r *run) command(ctx context.Context, args ...string) ([]byte, error) {
	out, err := product.Command(ctx, r.cfg.Program, r.postgres.server.URL(), args...).Output()
	if err != nil {
		return nil, fmt.Errorf("coppice %s: %w", args[0], err)
	}
	return out, nil
}

// addServer starts a server. The first keeps its id over its starts, and so takes
// up its own jobs. The other has a new id each time, as containers have, so that
// another server must take its jobs up.
func (r *run) addServer(ctx context.Context, number int) error {
	database, err := r.newLink(r.postgres.dial)
	if err != nil {
		return err
	}
	addr, err := product.FreeAddr() // where another program takes it, the supervisor starts the server until it is free
	if err != nil {
		return err
	}
	name := string(rune('a' + number))
	log, err := os.Create(filepath.Join(r.dir, "server-"+name+".log"))
	if err != nil {
		return err
	}
	conf := r.admin.Config().ConnConfig
	url := fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", conf.User, database.addr(), conf.Database)
	s := &server{name: name, addr: addr, database: database, log: log}
	s.command = func(ctx context.Context, start int) *exec.Cmd {
		id := "torture-" + name
		if number > 0 {
			id = fmt.Sprintf("torture-%s-%d", name, start)
		}
		args := []string{"serve", "--addr", s.addr, "--server-id", id, "--openai-base-url", "http://" + r.provider.addr() + "/v1"}
		return product.Command(ctx, r.cfg.Program, url, append(args, serverFlags...)...)
	}
	r.servers = append(r.servers, s)
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { s.supervise(serving) })
	r.atEnd(func() { end(); s.running.Wait(); s.log.Close() })
	return awaitReady(ctx, s) // one after the other, as the first one migrates
}

// serverFlags make small windows, so that branches are compacted often, and
// short timeouts, so that faults end within the run.
var serverFlags = []string{
	"--log-format", "json", "--log-level", "warn", "--max-conns", "10", "--openai-api-key", "none",
	"--reply-model", replyModel, "--summary-model", summaryModel, "--titles", "digest",
	"--model-window", replyModel + "=128000", "--model-window", summaryModel + "=128000",
	"--max-context-tokens", "1200", "--reserved-tokens", "200",
	"--settings", `{"min_fold_tokens": 100, "min_fold_messages": 2, "keep_user_cap_tokens": 60}`,
	"--summary-timeout", "3s", "--reply-timeout", "8s", "--reply-compaction-timeout", "5s",
	"--request-timeout", "10s", "--statement-timeout", "8s", "--compaction-timeout", "15s",
}

// stop ends all that was started, and removes the run's folder.
func (r *run) stop() {
	for _, do := range slices.Backward(r.ends) {
		do()
	}
	for _, s := range r.servers {
		log, _ := os.ReadFile(s.log.Name()) // the run made it
		if _, text, panicked := strings.Cut("\n"+string(log), "\npanic: "); panicked {
			r.report.violate("panic", "server %s: %s", s.name, clip(text, 3000))
		}
	}
	if r.cfg.Keep {
		r.cfg.Logger.Warn("the run's folder is left as it is", "dir", r.dir)
	} else if err := os.RemoveAll(r.dir); err != nil {
		r.cfg.Logger.Warn("the run's folder could not be removed", "dir", r.dir, "error", err)
	}
}
