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

// lookAtSources looks at all that the program is made of: go test remembers what
// came of a test for as long as the files are the same that it looked at, and
// would not run it again for another program.
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
	program, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	cfg.Program, cfg.Dir = program, t.TempDir()
	if os.Geteuid() == 0 { // Postgres runs as somebody else, who must get through
		for _, dir := range []string{cfg.Dir, filepath.Dir(cfg.Dir)} {
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg.Logger = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg.Duration, cfg.CheckEvery, cfg.JobWait = 12*time.Second, 6*time.Second, 5*time.Second
	cfg.Kills, cfg.Cuts, cfg.Fills = 4, 1, 1
	return cfg
}

// testWriter logs where the test does.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Helper()
	w.t.Logf("%s", b)
	return len(b), nil
}

// TestRun is a short run of everything, which goes on until it has checked
// enough; lab torture does long ones.
func TestRun(t *testing.T) {
	t.Parallel()
	cfg := shortRun(t)
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("%s: %s", v.Kind, v.Detail)
	}
	for _, f := range report.Missed {
		t.Errorf("too little was checked: %s: %d, and at least %d are needed", f.Name, f.Got, f.Need)
	}
	for _, kind := range []string{"program killed", "Postgres killed"} {
		if report.Faults[kind] != cfg.Kills {
			t.Errorf("%s %d times, want %d", kind, report.Faults[kind], cfg.Kills)
		}
	}
	checkEmpty(t, cfg.Dir)
}

// Without commits that last, a run must find what kills lose.
func TestRunFindsLostCommits(t *testing.T) {
	t.Parallel()
	cfg := shortRun(t)
	cfg.Duration, cfg.CheckEvery, cfg.JobWait = 8*time.Second, 4*time.Second, 0
	cfg.Cuts, cfg.Fills, cfg.LoseCommits, cfg.UntilBroken = 0, 0, true, true
	cfg.Logger = nil
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Failed() {
		t.Errorf("a run in which Postgres was killed %d times and loses commits found nothing", report.Faults["Postgres killed"])
	}
}

// A run that is called off leaves nothing behind.
func TestRunCalledOff(t *testing.T) {
	t.Parallel()
	cfg := shortRun(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	checkEmpty(t, cfg.Dir)
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("%s is left behind", entry.Name())
	}
}
