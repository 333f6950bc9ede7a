package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/lab/bench"
	"github.com/coppice-chat/coppice/lab/bench/firsttoken"
	"github.com/coppice-chat/coppice/lab/bench/speed"
	"github.com/coppice-chat/coppice/lab/product"
)

// asProgram is the variable by which the test binary is this program: a
// measurement starts its own program once more.
const asProgram = "LAB_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	if err := os.Setenv(asProgram, "1"); err != nil {
		panic(err)
	}
	code := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(code)
}

var programDir string // "" unless the product's program was built

// buildProgram builds the product's program once.
var buildProgram = sync.OnceValues(func() (path string, err error) {
	if programDir, err = os.MkdirTemp("", "coppice-lab-test-"); err != nil {
		return "", err
	}
	return product.Build(context.Background(), programDir)
})

// siteArgs say what the tests measure, and where.
func siteArgs(t *testing.T, url string) []string {
	t.Helper()
	program, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--program", program, "--database-url", url}
}

// A result is what a command line came to.
type result struct {
	stdout, stderr string
	code           int
}

func runLab(args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

// mustRun is runLab for command lines that have to succeed, and returns standard
// output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	r := runLab(args...)
	if r.code != 0 {
		t.Fatalf("lab %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

func TestBenchForks(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	text, err := os.ReadFile("../../../testdata/librechat.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "tree.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "forks", "--chats", "2", "--turns", "150", "--data", data}
	plain := mustRun(t, args...)
	for _, want := range []string{"generated: 2 conversations, ", "; the window is 16,000 tokens\n", "\n| rule  ", "\n| ours ", "tree.json: 2 conversations, "} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is not in\n%s", want, plain)
		}
	}
	if again := mustRun(t, args...); again != plain {
		t.Errorf("the same seed gives other figures:\n%s\n%s", plain, again)
	}
	var report bench.ForksReport
	if err := json.Unmarshal([]byte(mustRun(t, append(args, "--json")...)), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Sources) != 2 || len(report.Sources[0].Rules) != 6 || report.Sources[0].Window != 16_000 {
		t.Errorf("%+v", report)
	}

	for _, test := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--chats", "1", "--turns", "5"}, "No real exports: name a folder", 0},
		{[]string{"--chats", "1", "--turns", "5", "--data", filepath.Join(data, "nowhere")}, "No real exports: there is no folder", 0},
		{[]string{"--chats", "0"}, "--chats and --turns must be 1 or more", exitFailed},
	} {
		r := runLab(append([]string{"bench", "forks"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.stderr, test.says) {
			t.Errorf("%q: exit code %d, %q", test.args, r.code, r.stderr)
		}
	}
}

// The chat that the figure is worked out on is in a database that is dropped.
// Tests that look for databases run one after the other.
func TestBenchCache(t *testing.T) {
	url := dbtest.URL(t)
	args := append([]string{"bench", "cache", "--turns", "5"}, siteArgs(t, url)...)
	plain := mustRun(t, args...)
	for _, want := range []string{"5 turns of ", "; 0 compactions by nobody", "\n| ours ", "\n| sliding window of the same size |"} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is not in\n%s", want, plain)
		}
	}
	var report bench.CacheReport
	if err := json.Unmarshal([]byte(mustRun(t, append(args, "--json")...)), &report); err != nil {
		t.Fatal(err)
	}
	if report.Messages != 11 || report.Ours.Tokens == 0 || report.Ours != report.Sliding {
		t.Errorf("%+v", report)
	}
	benchLeavesNothing(t, url)
}

// The smallest part of the harness runs against a server of its own, and leaves
// nothing behind. No figure is looked at: TestBenchAll runs the other parts.
func TestBenchSpeed(t *testing.T) {
	url := dbtest.URL(t)
	var report speed.Report
	args := append([]string{"bench", "tree", "--quick", "--json"}, siteArgs(t, url)...)
	program := args[slices.Index(args, "--program")+1]
	if err := json.Unmarshal([]byte(mustRun(t, append(args, "--before", program)...)), &report); err != nil {
		t.Fatal(err)
	}
	if results := report.Parts["tree"].Comparisons[0].Results; results[0].Ratios["before"].P50.Median <= 0 || results[len(results)-1].Name != "before" {
		t.Errorf("not measured beside an earlier program: %+v", results)
	}
	if part := report.Parts["tree"]; len(part.Comparisons) != 1 || len(report.Parts) != 1 || report.Machine.Postgres == "" {
		t.Errorf("%+v", report)
	}
	benchLeavesNothing(t, url)
}

// benchLeavesNothing fails where a database of a measurement is still there.
func benchLeavesNothing(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var left int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_database where starts_with(datname, 'coppice_bench_')").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases are left: %v", left, err)
	}
}

// The whole harness runs through, and prints what the documentation holds. Its
// figures are of small data and a moment: they are looked at for their shape
// only. It plants databases of every size and takes minutes on a busy machine,
// so it runs only where COPPICE_TEST_BENCH is set, as .ci/run does.
func TestBenchAll(t *testing.T) {
	if os.Getenv("COPPICE_TEST_BENCH") == "" {
		t.Skip("COPPICE_TEST_BENCH is not set")
	}
	docs := t.TempDir()
	for _, name := range pages {
		page, err := os.ReadFile(filepath.Join("../../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(docs, name), page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	url := dbtest.URL(t)
	args := append([]string{"bench", "all", "--quick", "--json", "--out", docs}, siteArgs(t, url)...)
	var report speed.Report
	if err := json.Unmarshal([]byte(mustRun(t, args...)), &report); err != nil {
		t.Fatal(err)
	}
	if report.Machine.CPUs < 1 || report.Machine.Postgres == "" {
		t.Errorf("%+v", report.Machine)
	}
	for part, comparisons := range map[string]int{"append": 5, "context": 3, "transcript": 2, "tree": 1, "import": 1, "mixed": 1} {
		got := report.Parts[part]
		if len(got.Comparisons) != comparisons || report.MemoryBytes[part] < 1e6 {
			t.Errorf("%s: %d comparisons, want %d; %.0f bytes of memory", part, len(got.Comparisons), comparisons, report.MemoryBytes[part])
		}
		for _, c := range got.Comparisons {
			for i, r := range c.Results {
				if r.Jobs == 0 || r.P50 <= 0 || r.P99 < r.P50 || r.PerSecond <= 0 || i == 0 && r.Name != "coppice" && r.Name != "without search" {
					t.Errorf("%s: %+v", c.Name, r)
				}
			}
			ratios := c.Results[0].Ratios
			if len(c.Results) > 1 && ratios["sql"].P50.Median <= 0 {
				t.Errorf("%s: %+v", c.Name, ratios)
			}
			if bare := slices.Contains([]string{"append", "context", "transcript"}, part); len(c.Results) > 2 && bare != (ratios["net/http"].P50.Median > 0) {
				t.Errorf("%s, beside net/http: %+v", c.Name, ratios)
			}
		}
	}
	if load := report.Parts["mixed"].Load; load == nil || load.Ways["coppice"].Requests == 0 || load.Ways["sql"].P99 <= 0 {
		t.Errorf("%+v", load)
	}
	if len(report.Growth) != 4 {
		t.Fatalf("%d axes", len(report.Growth))
	}
	for _, a := range report.Growth {
		if n := len(a.Sizes); n < 2 || len(a.Context.Results) != n || len(a.Append.Results) != n || len(a.Transcript.Results) != n {
			t.Errorf("%+v", a)
		}
		if svg, err := os.ReadFile(filepath.Join(docs, "images", a.File()+".svg")); err != nil || !strings.HasPrefix(string(svg), "<svg") {
			t.Errorf("the plot of %s: %v", a.Name, err)
		}
	}
	if last := report.Growth[3]; len(last.Storage) != len(last.Sizes) || last.Storage[0].Ratio <= 1 {
		t.Errorf("%+v", last.Storage)
	}
	for _, target := range report.Targets() {
		if target.Measured == "" {
			t.Errorf("%+v", target)
		}
	}
	if n := len(report.Targets()); n != 9 {
		t.Errorf("%d targets", n)
	}
	after, err := os.ReadFile(filepath.Join(docs, "performance-tables.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<!-- bench mixed -->\n\nfour contexts to one append", "\n\n<!-- end -->", "| all, for each byte of a body |"} {
		if !strings.Contains(string(after), want) {
			t.Errorf("%q is not in\n%s", want, after)
		}
	}
	benchLeavesNothing(t, url)
}

func TestBenchSpeedRefuses(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	for _, page := range pages {
		if err := os.WriteFile(filepath.Join(docs, page), []byte("# Performance\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"append", "--rounds", "0"}, "--rounds, --slice and --largest-database must be", exitFailed},
		{[]string{"growth", "--axis", "width"}, "--axis must be one of", exitFailed},
		{[]string{"all", "--out", docs}, "has no place for the tables of machine", exitFailed},
	} {
		r := runLab(append([]string{"bench"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.stderr, test.says) {
			t.Errorf("%q: exit code %d, %q", test.args, r.code, r.stderr)
		}
	}
}

// Every way to the model is measured, on a database that is dropped. No figure is
// looked at.
func TestBenchOpenAI(t *testing.T) {
	url := dbtest.URL(t)
	args := append([]string{"bench", "openai", "--lengths", "4,202", "--rounds", "2", "--streams", "3", "--pieces", "3", "--pause", "1ms", "--history", "4"}, siteArgs(t, url)...)
	plain := mustRun(t, args...)
	for _, want := range []string{"| messages ", "\n| 4 ", "\n| 202 ", "| streams at once ", "\n| 3, direct ", "\n| 3, proxy ", "\n| 3, coppice ", "\n| 3, coppice, siblings "} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is not in\n%s", want, plain)
		}
	}
	var report firsttoken.Report
	if err := json.Unmarshal([]byte(mustRun(t, append(args, "--json")...)), &report); err != nil {
		t.Fatal(err)
	}
	if short, long := report.Lengths[0], report.Lengths[1]; short.P50[firsttoken.Coppice] <= 0 || long.P50[firsttoken.Direct] <= 0 || short.Prompt >= long.Prompt || report.Streams[2].FirstP50 <= 0 {
		t.Errorf("%+v", report)
	}
	if r := runLab("bench", "openai", "--lengths", "5"); r.code != exitFailed || !strings.Contains(r.stderr, "--lengths must be even numbers") {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
	benchLeavesNothing(t, url)
}
