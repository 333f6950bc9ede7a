package torture

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// One of Postgres' processes that outlives the main process, because it stands
// still, doesn't keep Postgres from being started again.
func TestPostgresStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Geteuid() == 0 { // Postgres runs as somebody else, who must get through
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := os.Chmod(d, 0o711); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := &postgres{dataDir: filepath.Join(dir, "data"), log: slog.New(slog.DiscardHandler)}
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(context.WithoutCancel(t.Context())) })
	conn, err := pgx.Connect(t.Context(), p.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	backend := int(conn.PgConn().PID())
	if err := syscall.Kill(backend, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(backend, syscall.SIGKILL) })
	parent, begun, _ := processStat(backend)
	if children := childrenOf(parent); len(children) < 2 {
		t.Errorf("the main process %d has the children %v", parent, children)
	}
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	if (process{backend, begun}).lives() {
		t.Errorf("process %d still lives", backend)
	}
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
}
