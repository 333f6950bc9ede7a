//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// tempDir is t.TempDir with a way in for the user that root runs servers as.
func tempDir(t *testing.T) string {
	t.Helper()
	dir := check.Must(os.MkdirTemp("", "coppice-test-"))(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	check.NoError(t, os.Chmod(dir, 0o755))
	return check.Must(filepath.EvalSymlinks(dir))(t)
}

// testConfig has no fsync: these tests kill processes, not the machine.
func testConfig(t *testing.T, dir string) Config {
	return Config{
		DataDir:    dir,
		CacheDir:   filepath.Join(tempDir(t), "cache"),
		Parameters: map[string]string{"fsync": "off"},
		Logger:     slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// madeDir is the folder of a data directory that a server has used.
var madeDir string

var makeDataDir = sync.OnceValues(func() (path string, err error) {
	if madeDir, err = os.MkdirTemp("", "coppice-test-"); err != nil {
		return "", err
	}
	path = filepath.Join(madeDir, "data")
	if err = os.Chmod(madeDir, 0o755); err != nil {
		return "", err
	}
	s, err := Start(context.Background(), Config{DataDir: path, Parameters: map[string]string{"fsync": "off"}})
	if err != nil {
		return "", err
	}
	return path, s.Stop(context.Background())
})

// mustStart starts a server. A directory that isn't there yet becomes a copy of one that was
// used, because initdb takes longer than most tests.
func mustStart(t *testing.T, cfg Config) *Server {
	t.Helper()
	if _, err := os.Stat(cfg.DataDir); err != nil {
		from := check.Must(makeDataDir())(t)
		out, err := exec.Command("cp", "-a", from, cfg.DataDir).CombinedOutput()
		check.Need(t, err == nil, "cp: %v: %s", err, out)
	}
	s := check.Must(Start(t.Context(), cfg))(t)
	stopAtEnd(t, s)
	return s
}

func stopAtEnd(t *testing.T, s *Server) {
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func mustStop(t *testing.T, s *Server) {
	t.Helper()
	check.NoError(t, s.Stop(t.Context()))
}

// query runs statements on a connection of its own and returns the last column of
// the last row as text.
func query(t *testing.T, url string, statements ...string) string {
	t.Helper()
	ctx := t.Context()
	conn := check.Must(pgx.Connect(ctx, url))(t)
	defer conn.Close(ctx)
	last := ""
	for _, statement := range statements {
		results, err := conn.PgConn().Exec(ctx, statement).ReadAll()
		check.Need(t, err == nil, "%s: %v", statement, err)
		for _, r := range results {
			for _, row := range r.Rows {
				last = string(row[len(row)-1])
			}
		}
	}
	return last
}

// answers wants statements to give these.
func answers(t *testing.T, url string, want map[string]string) {
	t.Helper()
	for statement, want := range want {
		check.Equal(t, statement, query(t, url, statement), want)
	}
}

// checkKept wants so many rows in the table kept.
func checkKept(t *testing.T, url string, rows int) {
	t.Helper()
	got := query(t, url, "select count(*) from kept")
	check.That(t, got == strconv.Itoa(rows), "%s rows are left, want %d", got, rows)
}

func TestStart(t *testing.T) {
	t.Parallel()
	// Defaults only, and folders above that aren't there yet.
	dir := filepath.Join(tempDir(t), "a \"dir\" [& 100%] =?*+", "data")
	s := check.Must(Start(t.Context(), Config{DataDir: dir}))(t)
	stopAtEnd(t, s)
	answers(t, s.URL(), map[string]string{
		"SELECT current_database()":             "coppice",
		"SELECT current_user":                   "coppice",
		"SHOW is_superuser":                     "off",
		"SHOW fsync":                            "on",
		"SHOW full_page_writes":                 "on",
		"SHOW synchronous_commit":               "on",
		"SHOW data_checksums":                   "on",
		"SHOW listen_addresses":                 "",
		"SHOW unix_socket_permissions":          "0700",
		"SHOW server_encoding":                  "UTF8",
		"SHOW max_connections":                  "100",
		"SELECT 'a' < 'B' COLLATE \"default\"":  "f",
		"SELECT lower('ÄÖÜ')":                   "äöü",
		"SELECT to_tsvector('simple', 'ÉCOLE')": "'école':1",
		"SELECT datcollate FROM pg_database WHERE datname = 'coppice'": "C",
	})
	for path, want := range map[string]fs.FileMode{".": 0o700, "cluster": 0o700, "socket": 0o700, "postgres.log": 0o600, "endpoint.json": 0o600} {
		fi := check.Must(os.Stat(filepath.Join(dir, path)))(t)
		if path == "." && os.Geteuid() == 0 {
			want = 0o710
		}
		got := fi.Mode().Perm()
		check.That(t, got == want, "mode of %s: %v, want %v", path, got, want)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err of a running server: %v", err)
	}
	query(t, s.URL(), "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)")
	mustStop(t, s)
	<-s.Done()
	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop: %v", err)
	}
	mustStop(t, s) // again: nothing to do

	s = mustStart(t, Config{DataDir: dir})
	check.Equal(t, "after a restart the table holds", query(t, s.URL(), "SELECT n FROM kept"), "7")
}

func TestStopEndsByItsContext(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	query(t, s.URL(), "CREATE TABLE kept AS SELECT generate_series(1, 1000)")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want nil or %v", err, context.Canceled)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop: %v", err)
	}
	s = mustStart(t, cfg)
	checkKept(t, s.URL(), 1000)
}

func TestInUse(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	_, err := Start(t.Context(), cfg)
	var inUse *InUseError
	check.Need(t, errors.As(err, &inUse), "a second Start: got %v, want an InUseError", err)
	if inUse.PID != os.Getpid() || inUse.DataDir != cfg.DataDir {
		t.Errorf("got %+v, want process %d and %s", inUse, os.Getpid(), cfg.DataDir)
	}
	query(t, s.URL(), "SELECT 1") // the first is unharmed
}

func TestAttach(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "data")
	attach := func(when string) string {
		t.Helper()
		url, err := Attach(dir)
		check.Need(t, err == nil || errors.Is(err, ErrNotRunning),
			"%s: got %v, want %v", when, err, ErrNotRunning)
		return url
	}
	check.Equal(t, "before the first start", attach("before the first start"), "")
	s := mustStart(t, testConfig(t, dir))
	check.Equal(t, "while running", attach("while running"), s.URL())
	stale := check.Must(os.ReadFile(filepath.Join(dir, endpointName)))(t)
	mustStop(t, s)
	check.Equal(t, "after the stop", attach("after the stop"), "")
	check.NoError(t, os.WriteFile(filepath.Join(dir, endpointName), stale, 0o600))
	check.Equal(t, "with a stale endpoint file", attach("with a stale endpoint file"), "")
}

// TestStopFreesTheDirectory holds that a stopped server's directory is free while a
// child that is being started still has the descriptor of its lock.
func TestStopFreesTheDirectory(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	child := check.Must(syscall.Dup(int(s.lock.Fd())))(t)
	defer syscall.Close(child)
	mustStop(t, s)
	url, err := Attach(cfg.DataDir)
	check.That(t, errors.Is(err, ErrNotRunning), "after the stop: %s, %v", url, err)
	mustStop(t, mustStart(t, cfg))
}

func TestSocketElsewhere(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"a long path": strings.Repeat("long", 40), "a comma": "one,two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, filepath.Join(tempDir(t), dir))
			s := mustStart(t, cfg)
			query(t, s.URL(), "SELECT 1")
			if url, err := Attach(cfg.DataDir); err != nil || url != s.URL() {
				t.Errorf("Attach: got %q, %v, want %q", url, err, s.URL())
			}
			socketDir := check.Must(os.Readlink(s.dir.socket()))(t)
			fi := check.Must(os.Stat(socketDir))(t)
			if fi.Mode().Perm() != 0o700 {
				t.Errorf("mode of %s: %v, want 0700", socketDir, fi.Mode())
			}
			mustStop(t, s)
			if _, err := os.Stat(socketDir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left after the stop: %v", socketDir, err)
			}
		})
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	for _, name := range []string{"listen_addresses", "Port", "unix_socket_directories", "data_directory", "a=b", "-c", ""} {
		cfg.Parameters = map[string]string{name: "x"}
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "parameter") {
			t.Errorf("parameter %q: got %v, want a refusal", name, err)
		}
	}
	check.Fails(os.Stat(cfg.DataDir))(t, "a refused start made the data directory", fs.ErrNotExist)
	cfg.Parameters = map[string]string{"fsync": "off", "Work_Mem": "5MB", "coppice.name": "it's"}
	s := mustStart(t, cfg)
	answers(t, s.URL(), map[string]string{"SHOW fsync": "off", "SHOW work_mem": "5MB", "SHOW coppice.name": "it's"})
	mustStop(t, s)

	// What the server has against its start stands in the error.
	cfg.Parameters = map[string]string{"fsync": "off", "shared_buffers": "plenty"}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `"plenty"`) {
		t.Errorf("a bad value: got %v, want the end of the server's log", err)
	}
	cfg.Parameters = nil
	mustStart(t, cfg)
}

// awaitFile waits until a file matches the pattern. It is called in other
// goroutines than the test's, too.
func awaitFile(t *testing.T, pattern string) {
	for range 6000 {
		if match, _ := filepath.Glob(pattern); len(match) > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("no file %s after 30 seconds", pattern)
}

func TestLogStaysSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempDir(t), "postgres.log")
	check.NoError(t, os.WriteFile(path, []byte(strings.Repeat("an older line\n", maxLogSize/10)), 0o600))
	l := check.Must(openServerLog(path))(t)
	defer l.file.Close()
	check.Equal(t, "the tail of a log without new lines", l.tail(), "")
	for _, name := range []string{path, path + ".1"} {
		fi := check.Must(os.Stat(name))(t)
		if fi.Size() > maxLogSize {
			t.Errorf("%s has %d bytes, want at most %d", name, fi.Size(), maxLogSize)
		}
	}
	check.Must(l.file.WriteString("a new line\n"))(t)
	got := l.tail()
	check.That(t, strings.HasSuffix(got, "postgres.log:\n  a new line"), "got the tail %q", got)
}

// gone reports whether none of the server's processes is left: each has the lock.
func gone(t *testing.T, dir string) bool {
	t.Helper()
	f := check.Must(os.Open(filepath.Join(dir, serverLockName)))(t)
	defer f.Close()
	return check.Must(tryLock(f, false))(t)
}

func awaitGone(t *testing.T, dir string) {
	t.Helper()
	for range 3000 {
		if gone(t, dir) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server is still there after 30 seconds")
}

// A directory with other files than a data directory's is left alone.
func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"PG_VERSION": "is a cluster of Postgres", "photo.jpg": "files of something else, such as photo.jpg", ".DS_Store": ""} {
		dir := t.TempDir()
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		if err := checkForeign(dataDir(dir)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("beside %s: %v", name, err)
		}
	}
}
