package torture

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/lab/product"
)

// buildProgram builds the program once, into a folder that TestMain removes.
var buildProgram = sync.OnceValues(func() (string, error) {
	err := lookAtSources()
	if err != nil {
		return "", err
	}
	if programDir, err = os.MkdirTemp("", "coppice-torture-test-"); err != nil {
		return "", err
	}
	return product.Build(context.Background(), programDir)
})

// lookAtSources looks at all files that the program is made of: go test remembers
// a test's result for as long as the files are the same that the test looked at.
func lookAtSources() error {
	return filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case slices.Contains([]string{".go", ".sql", ".yaml"}, filepath.Ext(name)):
			_, err = os.Stat(name)
		}
		return err
	})
}

var programDir string // "" unless the program was built

func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// shortRun is a configuration for seconds, in a folder of its own.
func shortRun(t *testing.T) Config {
	t.Helper()
	program := check.Must(buildProgram())(t)
	cfg := Config{Program: program, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Seed: 1, Writers: 6, Cuts: 2}
	if os.Geteuid() == 0 { // Postgres runs as another user, who must get through
		for _, dir := range []string{cfg.Dir, filepath.Dir(cfg.Dir)} {
			check.NoError(t, os.Chmod(dir, 0o711))
		}
	}
	cfg.Duration, cfg.Kills = 10*time.Second, 24
	t.Cleanup(func() {
		left, err := os.ReadDir(cfg.Dir)
		check.That(t, err == nil && len(left) == 0, "%v is left behind: %v", left, err)
	})
	return cfg
}

// Without commits that last, a run must find the messages that kills lose.
func TestRunFindsLostCommits(t *testing.T) {
	cfg := shortRun(t)
	cfg.Duration, cfg.Cuts, cfg.LoseCommits, cfg.UntilBroken = time.Minute, 0, true, true
	report := check.Must(Run(t.Context(), cfg))(t)
	check.That(t, len(report.Violations) != 0,
		"a run in which Postgres was killed %d times and loses commits found nothing", report.Faults["Postgres killed"])
}

// A run that is called off leaves nothing behind.
func TestRunCalledOff(t *testing.T) {
	cfg := shortRun(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
