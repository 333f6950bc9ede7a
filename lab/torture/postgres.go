package torture

import (
	"context"
	"fmt"
	"maps"
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
	embedded.Config
	server *embedded.Server
	socket string // path
}

// startPostgres starts one with parameters besides those of package embedded,
// until the run ends.
func (r *run) startPostgres(ctx context.Context, name string, parameters map[string]string) (p *postgres, err error) {
	p = &postgres{Config: embedded.Config{DataDir: filepath.Join(r.dir, name), Parameters: parameters}}
	if r.cfg.Workers > 0 { // nodes reach each other without TLS, and themselves by the socket
		maps.Copy(parameters, map[string]string{
			"shared_preload_libraries": "citus", "citus.node_conninfo": "sslmode=disable", "citus.local_hostname": filepath.Join(p.DataDir, "socket"),
			"max_connections": "200", "max_worker_processes": "32", "citus.recover_2pc_interval": "2s",
		})
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	r.atEnd(func() {
		if p.server == nil { // it didn't start again
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.server.Stop(ctx); err != nil {
			r.cfg.Logger.Warn("Postgres did not stop in time", "error", err)
		}
	})
	conf, err := pgconn.ParseConfig(p.server.URL())
	if err == nil {
		_, p.socket = pgconn.NetworkAddress(conf.Host, conf.Port)
	}
	return p, err
}

func (p *postgres) dial() (net.Conn, error) { return net.Dial("unix", p.socket) }

// kill kills the main process, whose other processes then end by themselves, and
// starts Postgres again.
func (p *postgres) kill(ctx context.Context) error {
	content, err := os.ReadFile(filepath.Join(p.DataDir, "cluster", "postmaster.pid"))
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return fmt.Errorf("postmaster.pid: %w", err)
	}
	main, err := os.FindProcess(pid)
	if err != nil || main.Kill() != nil {
		return fmt.Errorf("process %d can't be killed", pid)
	}
	<-p.server.Done()
	return p.start(context.WithoutCancel(ctx))
}

// start starts it, also on the data of one that was killed. Processes that
// outlived a killed main process keep the data in use until they end.
func (p *postgres) start(ctx context.Context) (err error) {
	for deadline := time.Now().Add(readyBound); ; sleep(ctx, 100*time.Millisecond) {
		p.server, err = embedded.Start(ctx, p.Config)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
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
		worker, err := r.startPostgres(ctx, fmt.Sprint("worker-", i), map[string]string{})
		if err != nil {
			return err
		}
		r.workers = append(r.workers, worker)
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
