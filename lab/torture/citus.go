package torture

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A worker is a node of Citus that holds shards. Other nodes reach it over its
// bridge, so that it keeps its address when it is killed.
type worker struct {
	postgres *postgres
	bridge   *bridge
}

// shards are few, so that each holds several conversations.
const shards = 8

// onCitus are the settings of a node's Postgres. Nodes reach each other without TLS, and
// themselves by the socket.
func onCitus(dataDir string) map[string]string {
	return map[string]string{
		"shared_preload_libraries": "citus", "wal_level": "logical", "citus.node_conninfo": "sslmode=disable", "citus.local_hostname": filepath.Join(dataDir, "socket"),
		"max_connections": "200", "max_worker_processes": "32", "max_replication_slots": "16", "max_wal_senders": "16",
		"citus.recover_2pc_interval": "2s",
	}
}

// superuser connects to a node as the one who may add nodes and move shards.
func superuser(ctx context.Context, p *postgres) (*pgx.Conn, error) {
	conf, err := pgx.ParseConfig(p.url())
	if err != nil {
		return nil, err
	}
	conf.User, conf.ConnectTimeout = "coppice_admin", 5*time.Second
	return pgx.ConnectConfig(ctx, conf)
}

// distribute starts the workers, and distributes the database over them as an
// operator does.
func (r *run) distribute(ctx context.Context) error {
	coordinator, err := superuser(ctx, r.postgres)
	if err != nil {
		return err
	}
	defer coordinator.Close(context.WithoutCancel(ctx))
	host, port, err := net.SplitHostPort(r.bridge.addr())
	if err != nil {
		return err
	}
	if _, err := coordinator.Exec(ctx, "create extension citus"); err != nil {
		return err
	}
	if _, err := coordinator.Exec(ctx, "select citus_set_coordinator_host($1, $2::text::integer)", host, port); err != nil {
		return err
	}
	for i := range r.cfg.Workers {
		dir := filepath.Join(r.dir, fmt.Sprint("worker-", i))
		p := &postgres{dataDir: dir, parameters: maps.Clone(r.postgres.parameters), log: r.cfg.Logger}
		maps.Copy(p.parameters, onCitus(dir))
		if err := p.start(ctx); err != nil {
			return err
		}
		w := &worker{postgres: p}
		r.workers = append(r.workers, w)
		if w.bridge, err = newBridge(p); err != nil {
			return err
		}
		conn, err := superuser(ctx, p)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if _, err := conn.Exec(ctx, "create extension citus"); err != nil {
			return err
		}
		host, port, _ := net.SplitHostPort(w.bridge.addr())
		if _, err := coordinator.Exec(ctx, "select citus_add_node($1, $2::text::integer)", host, port); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"migrate"}, {"distribute", "--shards", fmt.Sprint(shards)}} {
		if _, err := r.command(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// killWorker kills a worker, and starts it again.
func (r *run) killWorker(ctx context.Context, f fault) error {
	w := r.workers[f.much%len(r.workers)]
	w.postgres.mu.Lock()
	defer w.postgres.mu.Unlock()
	end := r.obstacles.begin(f.kind, everyServer)
	defer end()
	if err := w.postgres.kill(); err != nil {
		return err
	}
	r.report.fault(f.kind)
	r.sleep(ctx, f.lasts)
	return w.postgres.start(context.WithoutCancel(ctx))
}

// moveShard moves a shard from one worker to another while it is read and
// written. Other faults may keep it from that.
func (r *run) moveShard(ctx context.Context, f fault) error {
	conn, err := superuser(ctx, r.postgres)
	if err != nil {
		return nil // Postgres is down
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const some = `select s.shardid, from_node.nodename, from_node.nodeport, to_node.nodename, to_node.nodeport
		from pg_dist_shard s
		join pg_dist_placement p using (shardid)
		join pg_dist_node from_node on from_node.groupid = p.groupid
		join pg_dist_node to_node on to_node.groupid <> p.groupid and to_node.shouldhaveshards
		where s.logicalrelid = 'conversations'::regclass
		order by s.shardid, to_node.nodeport`
	type move struct {
		Shard    int64
		From     string
		FromPort int32
		To       string
		ToPort   int32
	}
	rows, _ := conn.Query(ctx, some) // whose error the rows have, too
	moves, err := pgx.CollectRows(rows, pgx.RowToStructByPos[move])
	if err != nil || len(moves) == 0 {
		return nil
	}
	m := moves[f.much%len(moves)]
	begin := time.Now()
	if _, err := conn.Exec(ctx, "select citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')", m.Shard, m.From, m.FromPort, m.To, m.ToPort); err != nil {
		r.cfg.Logger.Info("a shard could not be moved", "error", err)
		return nil
	}
	r.report.fault(f.kind)
	r.cfg.Logger.Info("moved a shard", "shard", m.Shard, "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// stopWorkers ends the workers for good.
func (r *run) stopWorkers(ctx context.Context) {
	for _, w := range slices.Backward(r.workers) {
		if w.bridge != nil {
			w.bridge.close()
		}
		w.postgres.stop(ctx)
	}
}
