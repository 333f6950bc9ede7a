//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// The test binary is run again as a program that owns a server, to be killed.
const (
	programDirEnv      = "COPPICE_EMBEDDED_TEST_DIR"
	programWatchdogEnv = "COPPICE_EMBEDDED_TEST_WATCHDOG"
	programBinEnv      = "COPPICE_EMBEDDED_TEST_BIN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(programDirEnv); dir != "" {
		run := runProgram
		if step := os.Getenv(upgradeKillEnv); step != "" {
			run = func(dir string) error { return runUpgrade(dir, step) }
		}
		if err := run(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(madeDir)
	os.Exit(code)
}

// runProgram starts a server and inserts rows until it is killed. It writes a
// line for every row that Postgres acknowledged.
func runProgram(dir string) error {
	ctx := context.Background()
	h := thisHost()
	h.watchdog = h.watchdog || os.Getenv(programWatchdogEnv) != ""
	cfg := Config{DataDir: dir, Parameters: map[string]string{"fsync": "off"}}
	if bin := os.Getenv(programBinEnv); bin != "" {
		cfg.BinDirs = []string{bin}
	}
	s, err := start(ctx, cfg, h)
	if err != nil {
		return err
	}
	if dog := s.postmaster.watchdog; dog != nil {
		fmt.Println("watchdog", dog.cmd.Process.Pid)
	}
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS row (id bigint PRIMARY KEY)"); err != nil {
		return err
	}
	for id := int64(1); ; id++ {
		if _, err := conn.Exec(ctx, "INSERT INTO row VALUES ($1)", id); err != nil {
			return err
		}
		fmt.Println("row", id)
	}
}

// A program is this test binary as another process, which owns a server.
type program struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func startProgram(t *testing.T, dir string, env ...string) *program {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), programDirEnv+"="+dir), env...)
	cmd.Stderr = t.Output()
	out := check.Must(cmd.StdoutPipe())(t)
	check.NoError(t, cmd.Start())
	p := &program{cmd: cmd, out: bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

// next reads a line and returns the number in it; 0 at the end.
func (p *program) next(t *testing.T, word string) int {
	t.Helper()
	for p.out.Scan() {
		if number, ok := strings.CutPrefix(p.out.Text(), word+" "); ok {
			return check.Must(strconv.Atoi(number))(t)
		}
	}
	return 0
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// awaitRows returns when the program has some rows acknowledged.
func (p *program) awaitRows(t *testing.T) {
	t.Helper()
	for n := 0; n < 100; {
		if n = p.next(t, "row"); n == 0 {
			t.Fatal("the program has ended by itself")
		}
	}
}

// rest kills the program, and returns the last row it saw acknowledged.
func (p *program) rest(t *testing.T) int {
	t.Helper()
	last := 100 // see awaitRows
	check.NoError(t, p.cmd.Process.Kill())
	for n := p.next(t, "row"); n != 0; n = p.next(t, "row") {
		last = n
	}
	return last
}

// checkRows wants every acknowledged row, and at most one more, whose answer the
// program did not live to see.
func checkRows(t *testing.T, url string, acknowledged int) {
	t.Helper()
	got := query(t, url, "SELECT count(*) || ' ' || max(id) FROM row")
	want := fmt.Sprintf("%d %[1]d", acknowledged)
	oneMore := fmt.Sprintf("%d %[1]d", acknowledged+1)
	check.That(t, got == want || got == oneMore, "count and last row are %s, want %s or %s", got, want, oneMore)
}

func TestProgramKilled(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"by this system's means": nil,
		"by the watchdog":        {programWatchdogEnv + "=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
			for range 2 {
				p := startProgram(t, cfg.DataDir, env...)
				p.awaitRows(t)
				url := check.Must(Attach(cfg.DataDir))(t)
				query(t, url, "SELECT 1")
				_, err := Start(t.Context(), cfg)
				var inUse *InUseError
				check.That(t, errors.As(err, &inUse) && inUse.PID == p.cmd.Process.Pid,
					"beside the program: got %v, want an InUseError for process %d", err, p.cmd.Process.Pid)

				last := p.rest(t)
				awaitGone(t, cfg.DataDir)
				if url, err := Attach(cfg.DataDir); !errors.Is(err, ErrNotRunning) {
					t.Errorf("Attach after the kill: got %q, %v, want %v", url, err, ErrNotRunning)
				}
				s := mustStart(t, cfg)
				checkRows(t, s.URL(), last)
				query(t, s.URL(), "DROP TABLE row")
				mustStop(t, s)
			}
		})
	}
}

func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	p := startProgram(t, cfg.DataDir, programWatchdogEnv+"=1")
	dog := p.next(t, "watchdog")
	check.Need(t, dog != 0, "the program did not start")
	p.awaitRows(t)
	// Without its watchdog the server does not notice the program's death.
	check.NoError(t, syscall.Kill(dog, syscall.SIGKILL))
	last := p.rest(t)
	s := mustStart(t, cfg)
	checkRows(t, s.URL(), last)
}

func TestPostmasterKilled(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	query(t, s.URL(), "CREATE TABLE kept AS SELECT generate_series(1, 1000)")
	check.NoError(t, s.postmaster.cmd.Process.Kill())
	<-s.Done()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err: got %v, want that it was killed", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("Stop of a dead server: %v", err)
	}
	s = mustStart(t, cfg)
	checkKept(t, s.URL(), 1000)
}

// endlessInitdb makes a folder with server binaries whose initdb begins a cluster
// and does not get further.
func endlessInitdb(t *testing.T) string {
	t.Helper()
	cfg := testConfig(t, "")
	b := check.Must(find(t.Context(), finder{host: thisHost(), cfg: cfg, dir: dataDir(tempDir(t)), log: cfg.Logger}, ""))(t)
	dir := tempDir(t)
	fakeBin(t, dir, b.version())
	script(t, filepath.Join(dir, "initdb"), `
if [ "$1" != -D ]; then echo initdb; exit; fi
echo half >"$2/PG_VERSION"
exec sleep 4 # long enough to be killed, and soon gone where no signal comes at a program's death
`)
	return dir
}

func TestInitdbKilled(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	p := startProgram(t, cfg.DataDir, programBinEnv+"="+endlessInitdb(t))
	awaitFile(t, filepath.Join(cfg.DataDir, initPrefix+"*", "PG_VERSION"))
	p.kill()
	mustStart(t, cfg)
	noneLeft(t, filepath.Join(cfg.DataDir, initPrefix+"*"))
}

func noneLeft(t *testing.T, pattern string) {
	t.Helper()
	left, _ := filepath.Glob(pattern)
	check.That(t, len(left) == 0, "left behind: %v", left)
}

func TestStartEndsByItsContext(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		awaitFile(t, filepath.Join(cfg.DataDir, initPrefix+"*", "PG_VERSION"))
		cancel()
	}()
	endless := cfg
	endless.BinDirs = []string{endlessInitdb(t)}
	if _, err := Start(ctx, endless); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	mustStart(t, cfg)
	noneLeft(t, filepath.Join(cfg.DataDir, initPrefix+"*"))
}

func TestStalePIDOfLiveProcess(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	pidFile := s.dir.postmasterPID()
	left := check.Must(os.ReadFile(pidFile))(t)
	mustStop(t, s)
	// As after a container's restart: the number in the file is now that of a
	// process of the same user that has nothing to do with Postgres.
	other := exec.Command("sleep", "600")
	other.Dir = "/"
	other.SysProcAttr = procAttr(s.user, 0)
	check.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	_, rest, _ := strings.Cut(string(left), "\n")
	check.NoError(t, os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n%s", other.Process.Pid, rest), 0o600))
	check.NoError(t, s.user.own(pidFile))
	mustStart(t, cfg)
}

func TestServerStartedByHand(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	mustStop(t, s)

	socketDir := check.Must(makeSocketDir(s.dir.socket(), s.user))(t)
	byHand := serverCommand(t.Context(), s.bin.program("postgres"), "-D", s.dir.cluster(),
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+socketDir)
	byHand.SysProcAttr = procAttr(s.user, 0)
	byHand.Stderr = t.Output()
	check.NoError(t, byHand.Start())
	awaitFile(t, s.dir.postmasterPID())
	_, err := Start(t.Context(), cfg)
	var inUse *InUseError
	check.That(t, errors.As(err, &inUse) && inUse.PID == byHand.Process.Pid,
		"got %v, want an InUseError for process %d", err, byHand.Process.Pid)
	_ = byHand.Process.Signal(syscall.SIGINT)
	_ = byHand.Wait()
	mustStart(t, cfg)
}
