//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// postmasterOf is the process id of the private Postgres of a data directory.
func postmasterOf(t *testing.T, dataDir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dataDir, "cluster", "postmaster.pid"))
	if os.IsNotExist(err) {
		return 0
	}
	check.NoError(t, err)
	line, _, _ := strings.Cut(string(content), "\n")
	pid, _ := strconv.Atoi(line) // the file may be just being written
	return pid
}

// killPostgres kills the private Postgres of a data directory, and returns its
// process id.
func killPostgres(t *testing.T, dataDir string) int {
	t.Helper()
	pid := postmasterOf(t, dataDir)
	if pid == 0 {
		t.Fatal("no Postgres runs")
	}
	check.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	return pid
}

// awaitOtherPostgres returns when the server is ready on another Postgres than
// the one that was killed.
func awaitOtherPostgres(t *testing.T, s *served, dataDir string, killed int) {
	t.Helper()
	check.Eventually(t, "another Postgres", func() bool {
		s.alive(t)
		pid := postmasterOf(t, dataDir)
		return pid != 0 && pid != killed
	})
	awaitReady(t, s.url)
}

// awaitReady returns when a server says that it is ready.
func awaitReady(t *testing.T, url string) {
	t.Helper()
	check.Eventually(t, "the server to be ready", func() bool { return readiness(t, url) == http.StatusOK })
}

func readiness(t *testing.T, url string) int {
	t.Helper()
	status, _, err := try(t.Context(), http.MethodGet, url+"/readyz", nil)
	check.NoError(t, err)
	return status
}

// alive fails the test if the program has ended.
func (s *served) alive(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
		t.Fatalf("coppice serve has ended: %v\n%s", s.cmd.ProcessState, s.logged())
	default:
	}
}

// A server whose Postgres was killed answers 503 until it has started Postgres
// again, and then goes on by itself: requests, commands and background work.
func TestServerOutlivesItsPostgres(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	s := serve(t, []string{"OPENAI_API_KEY="}, "--data-dir", dir)
	path := newTalk(t, s.url)
	mustTalk(t, s.url, path, 2)

	// A process of Postgres that notices nothing holds the restart up.
	conn := check.Must(pgx.Connect(t.Context(), attachURL(t, dir)))(t)
	frozen := int(conn.PgConn().PID())
	t.Cleanup(func() {
		_ = syscall.Kill(frozen, syscall.SIGKILL)
		conn.PgConn().Conn().Close()
	})
	check.NoError(t, syscall.Kill(frozen, syscall.SIGSTOP))
	killed := killPostgres(t, dir)
	s.awaitLog(t, "Postgres has ended: starting it again")
	check.Eventually(t, "the server to say that it isn't ready", func() bool { return readiness(t, s.url) == http.StatusServiceUnavailable })
	if status, answer, err := try(t.Context(), http.MethodGet, s.url+path, nil); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a request without Postgres came to status %d, error %v: %s", status, err, answer)
	}
	call(t, http.MethodGet, s.url+"/healthz", nil, http.StatusOK, nil)
	// A command waits for Postgres meanwhile.
	list := make(chan result, 1)
	go func() { list <- runProgram(t, []string{"COPPICE_DATA_DIR=" + dir}, nil, "list", "--limit", "0") }()

	check.NoError(t, syscall.Kill(frozen, syscall.SIGCONT))
	awaitOtherPostgres(t, s, dir, killed)
	if r := <-list; r.code != 0 || strings.Count(r.stdout, "\n") == 0 {
		t.Errorf("a command during the restart: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if n := look(t, s.url, path).messages; n != 4 {
		t.Errorf("%d messages are left, want 4", n)
	}
	path = newTalk(t, s.url)
	mustTalk(t, s.url, path, 10)
	check.Eventually(t, "a compaction in the background", func() bool { return len(look(t, s.url, path).saved) > 0 })
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A server whose Postgres can't be started again ends, and says why. A client in the
// middle of its request doesn't hold the end up.
func TestServerEndsWithoutPostgres(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	s := serve(t, nil, "--data-dir", dir, "--shutdown-timeout", "1h") // which is for requests that can still succeed
	slow := begin(t, s)
	defer slow.body.Close()
	control := filepath.Join(dir, "cluster", "global", "pg_control")
	check.NoError(t, os.Rename(control, control+".away"))
	killPostgres(t, dir)
	if code := s.wait(t); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if want := "the private Postgres ended (it was started again"; !strings.Contains(s.logged(), want) {
		t.Errorf("the server doesn't say %q:\n%s", want, s.logged())
	}
	check.NoError(t, os.Rename(control+".away", control))
	mustRun(t, []string{"COPPICE_DATA_DIR=" + dir}, "list")
}
