package torture

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// positionHeader has how far the database's log was after a write. A client sends
// it back with reads.
const positionHeader = "Coppice-Position"

// positions are the tokens that a tenant's clients got. Only tokens are kept of
// writes that overlapped: of two writes, one answered before the other was sent,
// the later one's token says more.
type positions struct {
	mu  sync.Mutex
	all map[*tenant][]position
}

type position struct {
	token    string
	answered time.Time
}

func newPositions() *positions { return &positions{all: map[*tenant][]position{}} }

// heard keeps the token of an answer to a request.
func (p *positions) heard(t *tenant, sent time.Time, headers ...http.Header) {
	for _, h := range headers {
		token := h.Get(positionHeader)
		if token == "" || t == nil {
			continue
		}
		p.mu.Lock()
		p.all[t] = append(slices.DeleteFunc(p.all[t], func(q position) bool { return q.answered.Before(sent) }), position{token, time.Now()})
		p.mu.Unlock()
	}
}

// say puts the tokens into a request.
func (p *positions) say(t *tenant, req *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, q := range p.all[t] {
		if i == 0 {
			req.Header.Set(positionHeader, q.token)
		} else {
			req.Header[positionHeader][0] += ", " + q.token
		}
	}
}

// addReplica copies the database, and has the copy follow it. The copy is made of
// a server that doesn't run.
func (r *run) addReplica(ctx context.Context) (err error) {
	r.postgres.stop(ctx)
	dir := filepath.Join(r.dir, "replica")
	cluster := filepath.Join(dir, "cluster")
	if err := os.CopyFS(cluster, os.DirFS(filepath.Join(r.postgres.dataDir, "cluster"))); err != nil {
		return err
	}
	if err := os.Chmod(cluster, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(cluster, "standby.signal"), nil, 0o600); err != nil {
		return err
	}
	if r.postgres.parameters == nil {
		r.postgres.parameters = map[string]string{}
	}
	r.postgres.parameters["wal_keep_size"] = "4GB" // all of a run's: a replica that was down for long finds what it lacks
	if err := r.postgres.start(ctx); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(r.bridge.addr())
	if err != nil {
		return err
	}
	r.replica = &postgres{dataDir: dir, log: r.cfg.Logger, parameters: map[string]string{
		"primary_conninfo":            fmt.Sprintf("host=%s port=%s user=coppice_admin sslmode=disable", host, port),
		"wal_retrieve_retry_interval": "200ms",
	}}
	if err := r.replica.start(ctx); err != nil {
		return err
	}
	if r.replicaBridge, err = newBridge(r.replica); err != nil {
		return err
	}
	r.reads, err = newLink("replica", r.replicaBridge.addr())
	return err
}

// killReplica kills the replica, and starts it again after a while.
func (r *run) killReplica(ctx context.Context, f fault) error {
	r.replica.mu.Lock()
	defer r.replica.mu.Unlock()
	if err := r.replica.kill(); err != nil {
		return err
	}
	r.report.fault(f.kind)
	r.sleep(ctx, f.lasts)
	// It may have to ask a primary that is down just now.
	for deadline := time.Now().Add(readyBound); ; r.sleep(ctx, 100*time.Millisecond) {
		err := r.replica.start(context.WithoutCancel(ctx))
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// pauseReplica stops the replay of the log for a time.
func (r *run) pauseReplica(ctx context.Context, f fault) error {
	r.replica.mu.Lock()
	defer r.replica.mu.Unlock()
	if err := r.onReplica(ctx, "select pg_wal_replay_pause()"); err != nil {
		return err
	}
	r.report.fault(f.kind)
	r.sleep(ctx, f.lasts)
	return r.onReplica(context.WithoutCancel(ctx), "select pg_wal_replay_resume()")
}

func (r *run) onReplica(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, r.replica.server.SuperuserURL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// awaitReplica waits until the replica has what the primary has, so that a check
// sees the same on every server.
func (r *run) awaitReplica(ctx context.Context) error {
	if r.replica == nil {
		return nil
	}
	r.replica.mu.Lock()
	defer r.replica.mu.Unlock()
	var end string
	for deadline := time.Now().Add(quietPatience); ; r.sleep(ctx, 50*time.Millisecond) {
		err := r.admin.QueryRow(ctx, "select pg_current_wal_flush_lsn()::text").Scan(&end)
		if err == nil {
			err = r.onReplica(ctx, "do $$ begin if pg_last_wal_replay_lsn() < '"+end+"' then raise 'the replica is behind %', '"+end+"'; end if; end $$")
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("%w: %w", errNotQuiet, err)
		}
	}
}

// countReads notes where the servers' reads went.
func (r *run) countReads(ctx context.Context) {
	if r.replica == nil {
		return
	}
	for _, p := range r.programs {
		figures, err := r.metrics(ctx, p)
		if err != nil {
			continue
		}
		r.report.count(func(report *Report) {
			for _, to := range []string{"replica", "primary_behind", "primary_away", "primary_failed"} {
				report.Reads[to] += int(figures[`coppice_replica_reads_total{to="`+to+`"}`])
			}
		})
	}
}
