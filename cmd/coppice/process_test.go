package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/internal/check"
)

// timeout bounds what must come in the end, on the slowest machine.
const timeout = 60 * time.Second

// asProgram is a variable of the environment under which the test binary is the
// program itself: so the program needs no build of its own, and has -race where
// the tests have it.
const asProgram = "THIS_TEST_IS_COPPICE"

// programPath is where the program is. It is to be run in environment().
var programPath = sync.OnceValues(os.Executable)

var madeDir string // "" unless a data directory was made to be copied

// atOnce is how many tests run at once, unless -parallel says otherwise. They
// wait for other processes most of the time: for Postgres to start, and to write
// to the disk.
const atOnce = 6

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		completionTimeout = timeout
		main()
	}
	flag.Parse()
	if flag.NArg() > 0 { // else this would run all tests, and their programs would, too
		fmt.Fprintf(os.Stderr, "%q: the program runs in environment() only\n", flag.Args())
		os.Exit(exitUsage)
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(atOnce))
	}
	code := m.Run()
	os.RemoveAll(madeDir)
	os.Exit(code)
}

// newDataDir is a data directory that isn't there yet. Where tests run as root,
// Postgres runs as somebody else, who must be let through to it.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		for _, d := range []string{dir, filepath.Dir(dir)} {
			check.NoError(t, os.Chmod(d, 0o711))
		}
	}
	data := filepath.Join(dir, "data")
	t.Cleanup(func() { // a killed server's Postgres ends a moment after it, and may still write
		check.Eventually(t, "the end of the server in "+data, func() bool { return os.RemoveAll(data) == nil })
	})
	return data
}

// usedDataDir is a data directory on which a command has run: its Postgres is
// made and migrated, and holds nothing. All are copies of one, because making a
// cluster takes longer than most tests.
func usedDataDir(t *testing.T) string {
	t.Helper()
	from := check.Must(makeDataDir())(t)
	dir := newDataDir(t)
	out, err := exec.Command("cp", "-a", from, dir).CombinedOutput()
	check.Need(t, err == nil, "cp: %v: %s", err, out)
	return dir
}

// makeDataDir makes the directory that usedDataDir copies, once.
var makeDataDir = sync.OnceValues(func() (path string, err error) {
	program, err := programPath()
	if err != nil {
		return "", err
	}
	if madeDir, err = os.MkdirTemp("", "coppice-test-"); err != nil {
		return "", err
	}
	if err := os.Chmod(madeDir, 0o711); err != nil { // Postgres may run as somebody else
		return "", err
	}
	path = filepath.Join(madeDir, "data")
	cmd := exec.Command(program, "migrate", "--data-dir", path)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("coppice migrate: %w\n%s", err, out)
	}
	return path, nil
})

// environment is that of a run of the program: that of the tests, without what
// steers the program.
func environment() (env []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "DATABASE_URL" && !strings.HasPrefix(name, "COPPICE_") && !strings.HasPrefix(name, "OTEL_") {
			env = append(env, v)
		}
	}
	return append(env, "TZ=UTC", asProgram+"=1")
}

// command prepares a run of the program in an environment of its own.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	path := check.Must(programPath())(t)
	cmd := exec.Command(path, args...)
	cmd.Env = append(environment(), env...)
	return cmd
}

// A result is what a run of the program came to.
type result struct {
	stdout, stderr string
	code           int
}

// runProgram runs the program to its end.
func runProgram(t *testing.T, env []string, stdin io.Reader, args ...string) result {
	t.Helper()
	cmd := command(t, env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	check.NoError(t, cmd.Start())
	end := time.AfterFunc(4*timeout, func() { cmd.Process.Kill() }) // of a server that was to be refused
	defer end.Stop()
	err := cmd.Wait()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustRun is runProgram for runs that have to succeed, and returns standard output.
func mustRun(t *testing.T, env []string, args ...string) string {
	t.Helper()
	r := runProgram(t, env, nil, args...)
	if r.code != 0 {
		t.Fatalf("coppice %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// A served is a running coppice serve.
type served struct {
	url  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// serve starts coppice serve on a free port and returns when it is ready.
func serve(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	s := &served{done: make(chan struct{})}
	s.cmd = command(t, env, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	stderr := check.Must(s.cmd.StderrPipe())(t)
	check.NoError(t, s.cmd.Start())
	ready := make(chan string, 1)
	go func() {
		defer close(s.done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.mu.Lock()
			s.log.Write(append(lines.Bytes(), '\n'))
			s.mu.Unlock()
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				ready <- line.URL
			}
		}
		s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		<-s.done
		if t.Failed() {
			t.Logf("log of coppice serve:\n%s", s.logged())
		}
	})
	select {
	case s.url = <-ready:
	case <-s.done:
		t.Fatalf("coppice serve ended: %v\n%s", s.cmd.ProcessState, s.logged())
	case <-time.After(timeout):
		t.Fatalf("coppice serve is not ready after %v\n%s", timeout, s.logged())
	}
	return s
}

func (s *served) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// signal sends a signal.
func (s *served) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	check.NoError(t, s.cmd.Process.Signal(sig))
}

// wait returns the exit code when the server has ended.
func (s *served) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-s.done:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("coppice serve did not end\n%s", s.logged())
		return 0
	}
}

// call sends a request and decodes the answer, which has to have the given
// status, into out where that is not nil.
func call(t *testing.T, method, url string, body any, status int, out any) {
	t.Helper()
	got, answer, err := try(t.Context(), method, url, body)
	check.NoError(t, err)
	check.Need(t, got == status, "%s %s: status %d, want %d\n%s", method, url, got, status, answer)
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatalf("%s %s: %v\n%s", method, url, err, answer)
		}
	}
}

// try sends a request that may fail.
func try(ctx context.Context, method, url string, body any) (status int, answer []byte, err error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// attachURL is how to reach the private Postgres that a program runs on a data
// directory.
func attachURL(t *testing.T, dataDir string) string {
	t.Helper()
	return check.Must(embedded.Attach(dataDir))(t)
}
