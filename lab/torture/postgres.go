package torture

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/db/embedded"
)

// A postgres is a private Postgres that can be killed and started again. It
// listens on a unix socket; links give it ports.
type postgres struct {
	dataDir    string
	parameters map[string]string // besides those of package embedded

	server *embedded.Server
	socket string // path
}

// start starts Postgres, also on the data of one that was killed. Processes that
// outlived a killed main process keep the data in use until they end.
func (p *postgres) start(ctx context.Context) (err error) {
	for deadline := time.Now().Add(readyBound); ; time.Sleep(100 * time.Millisecond) {
		p.server, err = embedded.Start(ctx, embedded.Config{DataDir: p.dataDir, Parameters: p.parameters, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil || p.socket != "" {
		return err
	}
	conf, err := pgconn.ParseConfig(p.server.URL())
	if err == nil {
		_, p.socket = pgconn.NetworkAddress(conf.Host, conf.Port)
	}
	return err
}

func (p *postgres) dial() (net.Conn, error) { return net.Dial("unix", p.socket) }

// restart kills the main process, whose other processes then end by themselves,
// and starts Postgres again after a while.
func (p *postgres) restart(ctx context.Context, lasts time.Duration) error {
	content, err := os.ReadFile(filepath.Join(p.dataDir, "cluster", "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return fmt.Errorf("postmaster.pid: %w", err)
	}
	if err := killProcess(pid); err != nil {
		return err
	}
	<-p.server.Done()
	sleep(ctx, lasts)
	return p.start(context.WithoutCancel(ctx))
}

// killProcess kills a process with -9.
func killProcess(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

// stop ends it for good.
func (p *postgres) stop(log *slog.Logger) {
	if p.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.server.Stop(ctx); err != nil {
		log.Warn("Postgres did not stop in time", "error", err)
	}
}

// onCitus are the settings of a node's Postgres. Nodes reach each other without
// TLS, and themselves by the socket.
func onCitus(dataDir string) map[string]string {
	return map[string]string{
		"shared_preload_libraries": "citus", "citus.node_conninfo": "sslmode=disable", "citus.local_hostname": filepath.Join(dataDir, "socket"),
		"max_connections": "200", "max_worker_processes": "32", "citus.recover_2pc_interval": "2s",
	}
}

// asSuperuser runs a statement as the one who may add nodes.
func (p *postgres) asSuperuser(ctx context.Context, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, p.server.SuperuserURL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement, args...)
	return err
}

// distribute starts the workers, and distributes the database over them as an
// operator does.
func (r *run) distribute(ctx context.Context) error {
	join := func(p *postgres, l *link, call string) error {
		if err := p.asSuperuser(ctx, "create extension citus"); err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(l.addr())
		if err != nil {
			return err
		}
		return r.postgres.asSuperuser(ctx, "select "+call+"($1, $2::text::integer)", host, port)
	}
	front, err := r.newLink(r.postgres.dial)
	if err != nil {
		return err
	}
	if err := join(r.postgres, front, "citus_set_coordinator_host"); err != nil {
		return err
	}
	for i := range r.cfg.Workers {
		dir := filepath.Join(r.dir, fmt.Sprint("worker-", i))
		worker := &postgres{dataDir: dir, parameters: onCitus(dir)}
		r.workers = append(r.workers, worker)
		r.atEnd(func() { worker.stop(r.cfg.Logger) })
		if err := worker.start(ctx); err != nil {
			return err
		}
		l, err := r.newLink(worker.dial) // so that it keeps its address when it is killed
		if err != nil {
			return err
		}
		if err := join(worker, l, "citus_add_node"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"migrate"}, {"distribute", "--shards", "8"}} {
		if _, err := r.command(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
