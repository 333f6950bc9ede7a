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
	check.Need(t, pid != 0, "no Postgres runs")
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
	status := check.Must3(try(t.Context(), http.MethodGet, url+"/readyz", nil))(t)
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

// A server whose Postgres can't be started again ends, and says why. A client in the
// middle of its request doesn't hold the end up.
func TestServerEndsWithoutPostgres(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	s := serve(t, nil, "--data-dir", dir, "--shutdown-timeout", "1h") // which is for requests that can still succeed
	slow := begin(t, s, 1)
	defer slow.body.Close()
	control := filepath.Join(dir, "cluster", "global", "pg_control")
	check.NoError(t, os.Rename(control, control+".away"))
	killPostgres(t, dir)
	check.Equal(t, "exit code", s.wait(t), exitFailed)
	check.Has(t, "the log", s.logged(), "the private Postgres ended (it was started again")
	check.NoError(t, os.Rename(control+".away", control))
	mustRun(t, []string{"COPPICE_DATA_DIR=" + dir}, "list")
}
