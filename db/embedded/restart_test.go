//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// restartTimeout bounds one restart. After a kill Postgres first syncs every
// file of its cluster: 6 seconds where the disk is busy with other tests.
const restartTimeout = 5 * time.Minute

// restartConfig is testConfig for a server that is started again.
func restartConfig(t *testing.T) Config {
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	cfg.Restart = true
	return cfg
}

// awaitOther returns when a postmaster with another process id serves.
func awaitOther(t *testing.T, s *Server, first int) {
	t.Helper()
	for deadline := time.Now().Add(restartTimeout); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := pgx.Connect(t.Context(), s.URL()); err == nil {
			conn.Close(t.Context())
			if pid := readPID(s.dir.postmasterPID()); pid != first {
				return
			}
		}
		select {
		case <-s.Done():
			t.Fatalf("the server was not started again: %v", s.Err())
		default:
		}
		check.Need(t, !time.Now().After(deadline), "no other postmaster serves after %v", restartTimeout)
	}
}

// The new server waits for the killed one's processes, which would write the same files.
func TestRestartWaitsForTheKilledServersProcesses(t *testing.T) {
	t.Parallel()
	cfg := restartConfig(t)
	log := make(lines, 100)
	cfg.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), log), nil))
	s := mustStart(t, cfg)
	first := readPID(s.dir.postmasterPID())
	frozen := freezeBackend(t, s)
	check.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	log.await(t, "starting it again")
	log.await(t, "waiting for its end") // and not another failure
	check.Need(t, !gone(t, string(s.dir)),
		"the frozen process doesn't hold the lock, so the test shows nothing")
	if conn, err := pgx.Connect(t.Context(), s.URL()); err == nil {
		conn.Close(t.Context())
		t.Error("a server answers beside a process of the killed one")
	}
	check.Equal(t, "postmaster", readPID(s.dir.postmasterPID()), first)
	if _, err := Start(t.Context(), Config{DataDir: string(s.dir)}); !errors.As(err, new(*InUseError)) {
		t.Errorf("another program during the restart: %v, want an InUseError", err)
	}
	check.NoError(t, syscall.Kill(frozen, syscall.SIGCONT))
	awaitOther(t, s, first)
}

// lines are those of a log.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// await wants the next line but those of level INFO to say something.
func (l lines) await(t *testing.T, want string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, "level=INFO") {
				continue
			}
			check.Need(t, strings.Contains(line, want), "the log says %s, want %q", line, want)
			return
		case <-time.After(restartTimeout):
			t.Fatalf("the log doesn't say %q within %v", want, restartTimeout)
		}
	}
}

// freezeBackend stops a process that serves a connection, so that it notices
// nothing until it is continued.
func freezeBackend(t *testing.T, s *Server) (pid int) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), s.URL()))(t)
	pid = int(conn.PgConn().PID())
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		conn.PgConn().Conn().Close()
	})
	check.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	return pid
}

// awaitBetweenRuns returns when the server has noticed its postmaster's end.
func awaitBetweenRuns(t *testing.T, s *Server) {
	t.Helper()
	for deadline := time.Now().Add(restartTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		between := s.postmaster == nil
		s.mu.Unlock()
		if between {
			return
		}
	}
	t.Fatalf("the end of the postmaster was not noticed in %v", restartTimeout)
}

func TestStopDuringRestart(t *testing.T) {
	t.Parallel()
	cfg := restartConfig(t)
	s := mustStart(t, cfg)
	query(t, s.URL(), "create table kept as select generate_series(1, 1000) as id")
	freezeBackend(t, s)
	check.NoError(t, syscall.Kill(readPID(s.dir.postmasterPID()), syscall.SIGKILL))
	awaitBetweenRuns(t, s)
	mustStop(t, s) // doesn't wait for the frozen process
	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop: %v", err)
	}
	if _, err := Attach(cfg.DataDir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Attach after Stop: %v, want %v", err, ErrNotRunning)
	}
}
