package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A server stops on a signal with exit code 0, and finds its data on the next start.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	s := serve(t, nil, "--data-dir", dir, "--demo")
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		if status, answer, err := try(t.Context(), http.MethodGet, s.url+path, nil); err != nil || status != http.StatusOK {
			t.Errorf("GET %s: status %d, error %v\n%s", path, status, err, answer)
		}
	}
	_, metrics, err := try(t.Context(), http.MethodGet, s.url+"/metrics", nil)
	check.NoError(t, err)
	for _, name := range []string{"coppice_pool_acquired_connections", "coppice_http_requests_total", "process_resident_memory_bytes", "go_goroutines"} {
		check.That(t, bytes.Contains(metrics, []byte("\n"+name)), "/metrics lacks %s", name)
	}
	call(t, http.MethodPost, s.url+"/v1/conversations", map[string]any{"title": "Kept"}, http.StatusCreated, nil)
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, s.logged())
	}

	s = serve(t, nil, "--data-dir", dir, "--demo")
	var list struct {
		Data []struct{ Title string } `json:"data"`
	}
	call(t, http.MethodGet, s.url+"/v1/conversations", nil, http.StatusOK, &list)
	check.That(t, len(list.Data) == 2,
		"after a restart there are %d conversations, want the demo and the one made: %v", len(list.Data), list.Data)
	s.signal(t, os.Interrupt.(syscall.Signal))
	check.Equal(t, "exit code", s.wait(t), 0)
}

// A slowRequest is one whose body is still on its way.
type slowRequest struct {
	body     *io.PipeWriter
	answered chan slowAnswer
}

type slowAnswer struct {
	status int
	err    error
}

// begin sends half of a request and returns when the server has it, as the nth.
func begin(t *testing.T, s *served, n int) slowRequest {
	t.Helper()
	body, feed := io.Pipe()
	req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/conversations", body))(t)
	req.Header.Set("Content-Type", "application/json")
	slow := slowRequest{feed, make(chan slowAnswer, 1)}
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			slow.answered <- slowAnswer{err: err}
			return
		}
		res.Body.Close()
		slow.answered <- slowAnswer{status: res.StatusCode}
	}()
	check.Must(io.WriteString(feed, `{"title": `))(t)
	check.Eventually(t, "the slow request, and the one that asks", func() bool {
		_, metrics, err := try(t.Context(), http.MethodGet, s.url+"/metrics", nil)
		check.NoError(t, err)
		return bytes.Contains(metrics, fmt.Appendf(nil, "coppice_http_requests_in_flight %d\n", n+1))
	})
	return slow
}

// awaitLog returns when the server has logged some text.
func (s *served) awaitLog(t *testing.T, text string) {
	t.Helper()
	check.Eventually(t, "a log with "+text, func() bool {
		s.alive(t)
		return strings.Contains(s.logged(), text)
	})
}

// A request that is under way when the server is told to stop is answered. It is
// waited for no longer than was said, and not at all after a second signal.
func TestServeFinishesRequests(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	s := serve(t, env, "--shutdown-timeout", "100ms")
	slow := begin(t, s, 1)
	s.signal(t, syscall.SIGTERM)
	check.Equal(t, "exit code", s.wait(t), 0)
	slow.body.Close()
	a := <-slow.answered
	check.That(t, a.err != nil, "the request that was cut off came to status %d", a.status)

	s = serve(t, env, "--shutdown-timeout", "1h")
	slow, slower := begin(t, s, 1), begin(t, s, 2)
	s.signal(t, syscall.SIGTERM)
	s.awaitLog(t, "stopping")
	check.Must(io.WriteString(slow.body, `"Late"}`))(t)
	slow.body.Close()
	if a := <-slow.answered; a.err != nil || a.status != http.StatusCreated {
		t.Errorf("the request under way came to status %d, error %v", a.status, a.err)
	}
	s.signal(t, syscall.SIGTERM)
	code := s.wait(t)
	check.That(t, code != 0, "after two signals the exit code is 0")
	slower.body.Close()
	<-slower.answered
}

// Other machines are served only with keys, unless one insists.
func TestServeOthers(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	others := []string{"serve", "--addr", "0.0.0.0:0"}
	r := runProgram(t, env, nil, others...)
	check.Need(t, r.code == exitFailed && strings.Contains(r.stderr, "coppice keys create"),
		"without a key: exit code %d\n%s", r.code, r.stderr)
	local := func(s *served) string {
		return strings.Replace(s.url, "localhost", "127.0.0.1", 1) + "/v1/conversations"
	}
	s := serve(t, env, "--addr", "0.0.0.0:0", "--insecure")
	call(t, http.MethodGet, local(s), nil, http.StatusOK, nil)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)

	key := strings.TrimSpace(mustRun(t, env, "keys", "create", "a phone"))
	s = serve(t, env, "--addr", "0.0.0.0:0")
	call(t, http.MethodGet, local(s), nil, http.StatusUnauthorized, nil)
	req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, local(s), nil))(t)
	req.Header.Set("Authorization", "Bearer "+key)
	res := check.Must(http.DefaultClient.Do(req))(t)
	if res.Body.Close(); res.StatusCode != http.StatusOK {
		t.Errorf("with a key: status %d", res.StatusCode)
	}
}

// A command refuses a database without a schema, and serve makes one. A schema that is
// newer than the program is refused by both.
func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	env := []string{"DATABASE_URL=" + url}
	refused := func(want string, args ...string) {
		t.Helper()
		if r := runProgram(t, env, nil, args...); r.code != exitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	refused("no Coppice schema yet: run coppice migrate", "list")
	serve(t, env)
	mustRun(t, env, "list")
	execute(t, url, "insert into goose_db_version (version_id, is_applied) values (9999, true); update installation set oldest_program = 9999")
	refused("newer than this program", "list")
	refused("newer than this program", "serve", "--addr", "127.0.0.1:0")
}

// A reader that goes away ends a command quietly.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	mustRun(t, env, "import", hedgeFile)
	read, write, err := os.Pipe()
	check.NoError(t, err)
	read.Close()
	cmd := command(t, env, "export", "--all")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = write, &stderr
	cmd.Run()
	write.Close()
	if code := cmd.ProcessState.ExitCode(); code != exitBrokenPipe || stderr.Len() > 0 {
		t.Errorf("exit code %d, want %d\n%s", code, exitBrokenPipe, stderr.String())
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	other := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer other.Close()
	r := runProgram(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/none"}, nil, "serve", "--addr", other.Addr().String())
	check.That(t, r.code == exitFailed && strings.Contains(r.stderr, "another address by --addr"),
		"exit code %d\n%s", r.code, r.stderr)
}

// A start imports the demonstration once: what was pruned of it doesn't come back.
func TestDemoStaysPruned(t *testing.T) {
	t.Parallel()
	store, log := tree.New(dbtest.New(t)), slog.New(slog.DiscardHandler)
	heads := func() (n int) {
		page := check.Must(store.Branches(t.Context(), demoID, tree.Paging{}))(t)
		return len(page.Data)
	}
	check.NoError(t, importDemo(t.Context(), store, log))
	before := heads()
	c := check.Must(store.Conversation(t.Context(), demoID))(t)
	check.Must(store.Prune(t.Context(), demoID, c.HeadID))(t)
	check.NoError(t, importDemo(t.Context(), store, log))
	after := heads()
	check.That(t, after == before-1, "%d branches, and %d after a prune and another start", before, after)
}

// A command on what is there makes no database in a directory that doesn't exist.
func TestNoData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mistyped")
	r := runProgram(t, nil, nil, "list", "--data-dir", dir)
	if _, err := os.Stat(dir); err == nil || r.code != exitFailed || !strings.Contains(r.stderr, "--data-dir") {
		t.Errorf("exit code %d, %s; the directory is there: %t", r.code, r.stderr, err == nil)
	}
}
