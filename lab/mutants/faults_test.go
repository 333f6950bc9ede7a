package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
)

const root = "../.."

func load(t *testing.T) []Fault {
	t.Helper()
	text := check.Must(os.ReadFile("faults.txt"))(t)
	faults, err := parse(string(text))
	check.Need(t, err == nil && len(faults) >= 40, "%d faults, %v", len(faults), err)
	return faults
}

// planted returns the path and the content of the file that the fault changes.
func (f Fault) planted() (path, content string, err error) {
	path, _ = filepath.Abs(filepath.Join(root, f.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", "", f.outdated("%v", err)
	}
	content, err = f.plant(string(source))
	return path, content, err
}

// Each fault has its place, leaves a file that parses, and names a test that exists.
func TestEveryFaultHasItsPlace(t *testing.T) {
	t.Parallel()
	for _, f := range load(t) {
		path, content, err := f.planted()
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution); err != nil {
			t.Errorf("faults.txt:%d: with %q planted, the file doesn't parse: %v", f.line, f.name, err)
		}
		files, _ := filepath.Glob(filepath.Join(root, f.pkg, "*_test.go"))
		for alternative := range strings.SplitSeq(f.run, "|") {
			name, _, _ := strings.Cut(strings.TrimSuffix(alternative, "$"), "/")
			exists := regexp.MustCompile(`(?m)^func ` + name + `\w*\(t `)
			there := false
			for _, file := range files {
				text, _ := os.ReadFile(file)
				there = there || exists.Match(text)
			}
			check.That(t, there,
				"faults.txt:%d: %s has no test %s, which must find %q: name another test of this behaviour", f.line, f.pkg, name, f.name)
		}
	}
}

// Each fault is found by its test. COPPICE_TEST_FAULTS=1 runs all of them, and a
// regular expression in it only those whose name it matches.
func TestFaults(t *testing.T) {
	only := os.Getenv("COPPICE_TEST_FAULTS")
	if only == "" {
		t.Skip("COPPICE_TEST_FAULTS is not set")
	}
	for _, f := range load(t) {
		if only != "1" && !regexp.MustCompile(only).MatchString(f.name) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			path, content, err := f.planted()
			check.NoError(t, err)
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
			list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
			check.NoError(t, errors.Join(err, os.WriteFile(changed, []byte(content), 0o600), os.WriteFile(overlay, list, 0o600)))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "go", "test", "-short", "-count=1", "-failfast", "-vet=off", "-timeout=2m", "-run", f.run, "./"+f.pkg)
			cmd.Dir, cmd.WaitDelay = root, 10*time.Second
			cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay) // also for programs that the test builds
			out, err := cmd.CombinedOutput()
			switch text := string(out); {
			case err == nil:
				t.Errorf("%s %s passes with the fault in %s", f.pkg, f.run, f.file)
			case !strings.Contains(text, "--- FAIL: Test") && !strings.Contains(text, "panic: test timed out"): // of what never comes
				t.Errorf("%s %s fails, but no test of it does: %v\n%s", f.pkg, f.run, err, text)
			}
		})
	}
}
