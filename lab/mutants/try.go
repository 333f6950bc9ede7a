package mutants

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

// Config says where the source is, and how long to try.
type Config struct {
	Source  string                           // the root of the repository
	Timeout time.Duration                    // for the tests of one fault
	Torture time.Duration                    // of the torture on each fault that it must find; 0 leaves it out
	Remark  func(format string, args ...any) // told what came of each fault
}

// A bench is a copy of the source that faults are planted into.
type bench struct {
	Config
	dir string
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

// A Result is what came of one fault.
type Result struct {
	Fault
	outcome
	detail string
	took   time.Duration
}

// Try plants faults one after the other. With an error come the results before
// it.
func Try(ctx context.Context, faults []Fault, cfg Config) (results []Result, err error) {
	dir, err := os.MkdirTemp("", "coppice-mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := bench{cfg, dir}
	if err := b.copySource(ctx); err != nil {
		return nil, err
	}
	if err := b.baseline(ctx, faults); err != nil {
		return nil, err
	}
	for _, f := range faults {
		r := b.try(ctx, f)
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
		cfg.Remark("%-10s %s (%s)", r.outcome, f.name, r.took.Round(time.Second))
		if r.detail != "" {
			cfg.Remark("%s", r.detail)
		}
		results = append(results, r)
	}
	return results, nil
}

// copySource copies what git tracks, and what it would.
func (b bench) copySource(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "-z")
	cmd.Dir = b.Source
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
		from := filepath.Join(b.Source, name)
		if _, err := os.Lstat(from); os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err := copyFile(from, filepath.Join(b.dir, name)); err != nil {
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
func (b bench) baseline(ctx context.Context, faults []Fault) error {
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
			if out, err := b.goTest(ctx, s, 10*b.Timeout); err != nil {
				return fmt.Errorf("without any fault, %s fails: %v\n%s", s, err, out)
			}
		}
	}
	return nil
}

// goTool runs the go command in a folder of the copy.
func (b bench) goTool(ctx context.Context, folder string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.dir, folder)
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

func (b bench) goTest(ctx context.Context, s suite, timeout time.Duration) ([]byte, error) {
	return b.goTool(ctx, ".", "test", "-count=1", "-failfast", "-vet=off", "-timeout", timeout.String(), "-run", s.run, s.pkg)
}

// try plants a fault, runs what must find it, and takes it out again.
func (b bench) try(ctx context.Context, f Fault) (r Result) {
	begin := time.Now()
	r = Result{Fault: f, outcome: found}
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
		out, err := b.goTest(ctx, s, b.Timeout)
		switch {
		case err == nil:
			r.outcome, r.detail = missed, fmt.Sprintf("%s passes with the fault in %s", s, f.file)
			return r
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			r.outcome, r.detail = unbuilt, string(out)
			return r
		case bytes.Contains(out, []byte("panic: test timed out")):
			r.outcome, r.detail = hung, fmt.Sprintf("%s doesn't end within %s with the fault in %s", s, b.Timeout, f.file)
			return r
		}
	}
	if f.torture != "" && b.Torture > 0 {
		if out, err := b.goTool(ctx, "lab", "run", "./cmd/lab", "torture", "--duration", b.Torture.String()); err == nil {
			r.outcome, r.detail = missed, "the torture passes:\n"+string(out)
		}
	}
	return r
}

// Table prints the results in Markdown, and tells whether every fault was found.
func Table(w io.Writer, results []Result) bool {
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
