package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A bench is a copy of the source that faults are planted into.
type bench struct {
	dir              string
	timeout, torture time.Duration
}

// An outcome is what came of one fault.
type outcome string

const (
	found    outcome = "found"
	missed   outcome = "missed"
	hung     outcome = "hung"     // missed, as the tests never ended: a busy machine may do this, too
	unbuilt  outcome = "unbuilt"  // the source with the fault doesn't compile
	outdated outcome = "outdated" // the fault has no place in the source any more
)

type result struct {
	fault
	outcome
	detail string
	took   time.Duration
}

// copySource copies what git tracks, and what it would.
func (b bench) copySource(ctx context.Context) error {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
		if _, err := os.Lstat(name); os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err := copyFile(name, filepath.Join(b.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

// baseline runs the tests of all faults on the source as it is: a test that
// fails there finds nothing.
func (b bench) baseline(ctx context.Context, faults []fault) error {
	runs := map[string][]string{}
	for _, f := range faults {
		for _, s := range f.tests {
			if !slices.Contains(runs[s.pkg], s.run) {
				runs[s.pkg] = append(runs[s.pkg], s.run)
			}
		}
	}
	for pkg, patterns := range runs {
		for chunk := range slices.Chunk(patterns, 40) {
			s := suite{pkg, strings.Join(chunk, "|")}
			if out, err := b.goTest(ctx, s, 10*b.timeout); err != nil {
				return fmt.Errorf("without any fault, %s fails: %v\n%s", s, err, out)
			}
		}
	}
	return nil
}

func (b bench) goTool(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.dir
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

func (b bench) goTest(ctx context.Context, s suite, timeout time.Duration) ([]byte, error) {
	return b.goTool(ctx, "test", "-count=1", "-failfast", "-vet=off", "-timeout", timeout.String(), "-run", s.run, s.pkg)
}

// try plants a fault, runs what must find it, and takes it out again.
func (b bench) try(ctx context.Context, f fault) (r result) {
	begin := time.Now()
	r = result{fault: f, outcome: found}
	defer func() { r.took = time.Since(begin) }()
	file := filepath.Join(b.dir, f.file)
	source, err := os.ReadFile(file)
	if err != nil {
		r.outcome, r.detail = outdated, err.Error()
		return r
	}
	planted, err := f.plant(string(source))
	if err != nil {
		r.outcome, r.detail = outdated, err.Error()
		return r
	}
	if err := os.WriteFile(file, []byte(planted), 0o600); err != nil {
		r.outcome, r.detail = unbuilt, err.Error()
		return r
	}
	defer func() {
		if err := os.WriteFile(file, source, 0o600); err != nil {
			r.outcome, r.detail = unbuilt, err.Error()
		}
	}()
	for _, s := range f.tests {
		out, err := b.goTest(ctx, s, b.timeout)
		switch {
		case err == nil:
			r.outcome, r.detail = missed, fmt.Sprintf("%s passes with the fault in %s", s, f.file)
			return r
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			r.outcome, r.detail = unbuilt, string(out)
			return r
		case bytes.Contains(out, []byte("panic: test timed out")):
			r.outcome, r.detail = hung, fmt.Sprintf("%s doesn't end within %s with the fault in %s", s, b.timeout, f.file)
			return r
		}
	}
	if f.torture != "" && b.torture > 0 {
		if out, err := b.goTool(ctx, "run", "./cmd/torture", "--duration", b.torture.String()); err == nil {
			r.outcome, r.detail = missed, "the torture passes:\n"+string(out)
		}
	}
	return r
}

// table prints the results in Markdown, and tells whether every fault was found.
func table(w io.Writer, results []result) bool {
	count := map[outcome]int{}
	fmt.Fprintln(w, "| fault | in | found by |\n|---|---|---|")
	for _, r := range results {
		count[r.outcome]++
		by := "**" + string(r.outcome) + "**"
		if r.outcome == found {
			names := make([]string, len(r.tests))
			for i, s := range r.tests {
				names[i] = strings.ReplaceAll(strings.ReplaceAll(s.run, "$", ""), "|", ", ")
				if pkg := strings.TrimPrefix(s.pkg, "./"); pkg != r.pkg() {
					names[i] += " (" + pkg + ")"
				}
			}
			by = strings.Join(names, "; ")
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", r.name, r.pkg(), by)
	}
	fmt.Fprintf(w, "\n%d faults: %d found, %d missed, %d whose tests never ended, %d that don't build, %d out of date\n", len(results), count[found], count[missed], count[hung], count[unbuilt], count[outdated])
	return count[found] == len(results)
}
