//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// postmasterOf is the process id of the private Postgres of a data directory.
func postmasterOf(t *testing.T, dataDir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dataDir, "cluster", "postmaster.pid"))
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitOtherPostgres returns when the server is ready on another Postgres than
// the one that was killed.
func awaitOtherPostgres(t *testing.T, s *served, dataDir string, killed int) {
	t.Helper()
	eventually(t, "another Postgres", func() bool {
		s.alive(t)
		pid := postmasterOf(t, dataDir)
		return pid != 0 && pid != killed
	})
	awaitReady(t, s.url)
}

// awaitReady returns when a server says that it is ready.
func awaitReady(t *testing.T, url string) {
	t.Helper()
	eventually(t, "the server to be ready", func() bool { return readiness(t, url) == http.StatusOK })
}

func readiness(t *testing.T, url string) int {
	t.Helper()
	status, _, err := try(t.Context(), http.MethodGet, url+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
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
	conn, err := pgx.Connect(t.Context(), attachURL(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	frozen := int(conn.PgConn().PID())
	t.Cleanup(func() {
		_ = syscall.Kill(frozen, syscall.SIGKILL)
		conn.PgConn().Conn().Close()
	})
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	killed := killPostgres(t, dir)
	s.awaitLog(t, "Postgres has ended: starting it again")
	eventually(t, "the server to say that it isn't ready", func() bool { return readiness(t, s.url) == http.StatusServiceUnavailable })
	if status, answer, err := try(t.Context(), http.MethodGet, s.url+path, nil); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a request without Postgres came to status %d, error %v: %s", status, err, answer)
	}
	call(t, http.MethodGet, s.url+"/healthz", nil, http.StatusOK, nil)
	// A command waits for Postgres meanwhile.
	list := make(chan result, 1)
	go func() { list <- runProgram(t, []string{"COPPICE_DATA_DIR=" + dir}, nil, "list", "--limit", "0") }()

	if err := syscall.Kill(frozen, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitOtherPostgres(t, s, dir, killed)
	if r := <-list; r.code != 0 || strings.Count(r.stdout, "\n") == 0 {
		t.Errorf("a command during the restart: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if n := look(t, s.url, path).messages; n != 4 {
		t.Errorf("%d messages are left, want 4", n)
	}
	path = newTalk(t, s.url)
	mustTalk(t, s.url, path, 10)
	eventually(t, "a compaction in the background", func() bool { return len(look(t, s.url, path).saved) > 0 })
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A compaction that ran into the restart is made by the server that lives on.
func TestPostgresKilledDuringCompaction(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	fake := llmtest.NewServer(t, llmtest.After(answer, llmtest.Answer(scribed)))
	fake.Otherwise(llmtest.Answer(scribed))
	dir := usedDataDir(t)
	s := serve(t, nil, append(askScribe(fake), "--data-dir", dir)...)
	path := newTalk(t, s.url)
	mustTalk(t, s.url, path, 10)
	eventually(t, "a request to the model", func() bool { return len(fake.Requests()) > 0 })
	holdCommits(t, attachURL(t, dir), func() { close(answer) })
	awaitOtherPostgres(t, s, dir, killPostgres(t, dir))
	eventually(t, "the compaction that was interrupted", func() bool { return len(look(t, s.url, path).saved) > 0 })
	if c := look(t, s.url, path); len(c.saved) != 1 || len(c.summaries) != 1 || c.messages != 20 {
		t.Errorf("after the restart: %+v", c)
	}
}

// A server whose Postgres is killed again and again ends, and says why.
func TestServerEndsWithoutPostgres(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	s := serve(t, nil, "--data-dir", dir, "--shutdown-timeout", "1h") // which is for requests that can still succeed
	const restarts = 5
	for range restarts {
		awaitOtherPostgres(t, s, dir, killPostgres(t, dir))
	}
	// A client in the middle of its request doesn't hold the end up.
	slow := begin(t, s)
	defer slow.body.Close()
	killPostgres(t, dir)
	if code := s.wait(t); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if r := s.logged(); !strings.Contains(r, "the private Postgres ended (it was started again 5 times in a row") {
		t.Errorf("the server doesn't say why it ended:\n%s", r)
	} else if !strings.Contains(r, `"msg":"requests were cut off","timeout":1}`) {
		t.Errorf("the server doesn't say after which time it cut the request off:\n%s", r)
	}
	mustRun(t, []string{"COPPICE_DATA_DIR=" + dir}, "list")
}

// The end is told of even while Postgres is being started again.
func TestInterruptDuringRestart(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	s := serve(t, nil, "--data-dir", dir)
	conn, err := pgx.Connect(t.Context(), attachURL(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	frozen := int(conn.PgConn().PID())
	t.Cleanup(func() {
		_ = syscall.Kill(frozen, syscall.SIGKILL)
		conn.PgConn().Conn().Close()
	})
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	killPostgres(t, dir)
	s.awaitLog(t, "Postgres has ended: starting it again")
	s.signal(t, syscall.SIGINT)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A command whose own Postgres is killed fails, and leaves nothing half done: it
// can be run again.
func TestPostgresKilledUnderImport(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	env := []string{"COPPICE_DATA_DIR=" + dir}
	mustRun(t, env, "list")
	cmd := command(t, env, "import", "--format", "messages", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	// Conversations until the first of them is stored; then without end.
	lines := make(chan string)
	go func() {
		defer in.Close()
		for line := range lines {
			if _, err := io.WriteString(in, line); err != nil {
				return
			}
		}
	}()
	first := killedWhenStored(t, dir, lines, done, &stderr)
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "run it again") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	if out := mustRun(t, env, "list", "--limit", "0"); strings.Count(out, "\n") < first {
		t.Errorf("%d conversations were stored before the kill; these are left:\n%s", first, out)
	}
}

// killedWhenStored feeds an import until some of it is stored, kills its Postgres,
// and goes on until it has ended. It returns how many conversations were stored.
func killedWhenStored(t *testing.T, dir string, lines chan<- string, done <-chan error, stderr fmt.Stringer) (stored int) {
	t.Helper()
	defer close(lines)
	var conn *pgx.Conn
	for n := 0; ; n++ {
		body, err := json.Marshal(map[string]any{"id": uuid.Must(uuid.NewV7()), "messages": []map[string]string{{"role": "user", "content": fmt.Sprintf("Conversation %d", n)}}})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case lines <- string(body) + "\n":
		case <-done:
			if stored == 0 {
				t.Fatalf("the import ended before anything was stored:\n%s", stderr)
			}
			return stored
		case <-time.After(patience):
			t.Fatal("the import stands still")
		}
		if stored > 0 || n%100 != 99 {
			continue
		}
		if conn == nil {
			url, err := embedded.Attach(dir)
			if errors.Is(err, embedded.ErrNotRunning) {
				continue // the command is about to start it
			}
			if err != nil {
				t.Fatal(err)
			}
			if conn, err = pgx.Connect(t.Context(), url); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.QueryRow(t.Context(), "select count(*) from conversations").Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if stored > 0 {
			conn.Close(t.Context())
			killPostgres(t, dir)
		}
	}
}
