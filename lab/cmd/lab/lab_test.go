package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/lab/bench"
	"github.com/coppice-chat/coppice/lab/product"
)

// runLab carries out a command line that has to succeed, and returns standard output.
// Nothing may be left at the end.
func runLab(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} { // as root, Postgres runs as another user, who must get through
		check.NoError(t, os.Chmod(folder, 0o711))
	}
	t.Setenv("TMPDIR", dir)
	var stdout, stderr bytes.Buffer
	if code := run(args, &stdout, &stderr); code != 0 {
		t.Fatalf("lab %s: exit code %d\n%s%s", strings.Join(args, " "), code, &stdout, &stderr)
	}
	left := check.Must(os.ReadDir(dir))(t)
	check.That(t, len(left) == 0, "%v is left behind", left)
	return stdout.String()
}

// Each part runs beside its floor and an earlier program, with the floor's messages
// compared. No speed is looked at. All parts run where COPPICE_TEST_BENCH is set.
func TestBench(t *testing.T) {
	program := check.Must(product.Build(t.Context(), t.TempDir()))(t)
	part, results := "context", 2
	if os.Getenv("COPPICE_TEST_BENCH") != "" {
		part, results = "all", 3+2+4+2
	}
	file := filepath.Join(t.TempDir(), "results.json")
	table := runLab(t, "bench", part, "--quick", "--before", program, "--out", file)
	raw := check.Must(os.ReadFile(file))(t)
	var report bench.Report
	if err := json.Unmarshal(raw, &report); err != nil || len(report.Results) != results || report.Machine.Postgres == "" {
		t.Fatalf("%d results, %v\n%s", len(report.Results), err, raw)
	}
	for _, r := range report.Results {
		if len(r.Variants) != 3 || r.Variants[1].P50 <= 0 || !strings.Contains(table, "\n"+r.Name+"  ") {
			t.Errorf("%+v in\n%s", r, table)
		}
	}
}

func TestMemory(t *testing.T) {
	if out := runLab(t, "memory", "../../memory/testdata/locomo.json"); !strings.Contains(out, "all          2           1.000    1.000        1.000") || !strings.Contains(out, "\ndigest in three folds ") {
		t.Errorf("it printed\n%s", out)
	}
}

// The command lines in README.md are ones that the program takes.
func TestREADME(t *testing.T) {
	text := check.Must(os.ReadFile("../../README.md"))(t)
	file := filepath.Join(t.TempDir(), "FILE")
	check.NoError(t, os.WriteFile(file, nil, 0o600))
	lines := regexp.MustCompile("go run \\./cmd/lab( [a-z][^#)`\n]*)").FindAllStringSubmatch(string(text), -1)
	for _, line := range lines {
		parser, err := newParser(kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
		if err == nil {
			_, err = parser.Parse(strings.Fields(strings.ReplaceAll(line[1], "FILE", file)))
		}
		check.That(t, err == nil, "lab%s: %v", line[1], err)
	}
	check.That(t, len(lines) >= 4, "only %d command lines were found", len(lines))
}
