package dbtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
)

// A Replicated is a migrated database with a streaming replica. Both belong to the
// test.
type Replicated struct {
	Primary, Replica string // connection strings of the role that the program connects as

	primary, replica *embedded.Server
	config           embedded.Config // of the replica
}

// Replicate starts a private Postgres, and another one that follows it.
func Replicate(t testing.TB) *Replicated {
	t.Helper()
	dir, err := os.MkdirTemp("", "coppice-replica-")
	check.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // Postgres runs as somebody else where this runs as root
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), privateTimeout)
	defer cancel()
	settings := parameters()
	settings["max_connections"] = "100" // a replica takes no less
	primary := embedded.Config{DataDir: filepath.Join(dir, "primary"), CacheDir: cacheDir(), Parameters: settings}
	r := &Replicated{}
	if r.primary, err = embedded.Start(ctx, primary); err != nil {
		t.Fatalf("dbtest.Replicate: %v", err)
	}
	r.Primary = r.primary.URL()
	if _, _, err := migrate.Up(ctx, db.Config{URL: r.Primary}); err != nil {
		t.Fatalf("dbtest.Replicate: %v", err)
	}
	// The copy of a server that isn't running needs no program that the packages
	// from npm lack.
	check.NoError(t, r.primary.Stop(ctx))
	copied := filepath.Join(dir, "replica", "cluster")
	check.NoError(t, os.CopyFS(copied, os.DirFS(filepath.Join(primary.DataDir, "cluster"))))
	check.NoError(t, os.Chmod(copied, 0o700))
	check.NoError(t, os.WriteFile(filepath.Join(copied, "standby.signal"), nil, 0o600))
	if r.primary, err = embedded.Start(ctx, primary); err != nil {
		t.Fatalf("dbtest.Replicate: %v", err)
	}
	t.Cleanup(func() { r.primary.Stop(context.Background()) })
	from := check.Must(pgx.ParseConfig(r.primary.SuperuserURL()))(t)
	r.config = embedded.Config{DataDir: filepath.Join(dir, "replica"), CacheDir: cacheDir(), Parameters: parameters()}
	r.config.Parameters["max_connections"] = settings["max_connections"]
	r.config.Parameters["primary_conninfo"] = fmt.Sprintf("host=%s port=%d user=%s", from.Host, from.Port, from.User)
	r.StartReplica(t)
	t.Cleanup(func() { r.replica.Stop(context.Background()) })
	return r
}

// StartReplica starts the replica, which serves at the same URL after StopReplica.
func (r *Replicated) StartReplica(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), privateTimeout)
	defer cancel()
	var err error
	if r.replica, err = embedded.Start(ctx, r.config); err != nil {
		t.Fatalf("dbtest: start the replica: %v", err)
	}
	r.Replica = r.replica.URL()
}

// StopReplica ends the replica at once, with all its connections.
func (r *Replicated) StopReplica(t testing.TB) {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	r.replica.Stop(now) // which says that there is something to replay
}

// Pause stops the replay of the log, so that the replica shows the present state
// until Resume.
func (r *Replicated) Pause(t testing.TB) {
	t.Helper()
	r.onReplica(t, "select pg_wal_replay_pause()")
	r.await(t, "select pg_get_wal_replay_pause_state() = 'paused'")
}

// Resume goes on with the replay, and returns when the replica has all that was
// committed before.
func (r *Replicated) Resume(t testing.TB) {
	t.Helper()
	r.onReplica(t, "select pg_wal_replay_resume()")
	r.Await(t)
}

// Await returns when the replica has all that was committed before.
func (r *Replicated) Await(t testing.TB) {
	t.Helper()
	var end string
	check.NoError(t, onServer(t, r.primary.SuperuserURL(), "select pg_current_wal_insert_lsn()::text", &end))
	r.await(t, "select pg_last_wal_replay_lsn() >= '"+end+"'")
}

func (r *Replicated) await(t testing.TB, condition string) {
	t.Helper()
	check.Eventually(t, condition, func() (holds bool) {
		check.NoError(t, onServer(t, r.replica.SuperuserURL(), condition, &holds))
		return holds
	})
}

func (r *Replicated) onReplica(t testing.TB, statement string) {
	t.Helper()
	check.NoError(t, onServer(t, r.replica.SuperuserURL(), statement))
}

func onServer(t testing.TB, at, statement string, into ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if len(into) == 0 {
		_, err = conn.Exec(t.Context(), statement)
		return err
	}
	return conn.QueryRow(t.Context(), statement).Scan(into...)
}
