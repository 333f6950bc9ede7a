package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/bench"
	"github.com/coppice-chat/coppice/bench/speed"
	"github.com/coppice-chat/coppice/db/dbtest"
)

func TestBenchForks(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	text, err := os.ReadFile(hedgeFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "hedge.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "forks", "--chats", "2", "--turns", "150", "--data", data}
	plain := mustRun(t, nil, args...)
	for _, want := range []string{"generated: 2 conversations, ", "; the window is 16,000 tokens\n", "\n| rule  ", "\n| ours ", "hedge.json: 1 conversation, "} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is not in\n%s", want, plain)
		}
	}
	if again := mustRun(t, nil, args...); again != plain {
		t.Errorf("the same seed gives other figures:\n%s\n%s", plain, again)
	}
	var report bench.ForksReport
	if err := json.Unmarshal([]byte(mustRun(t, nil, append(args, "--json")...)), &report); err != nil {
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
		{[]string{"--chats", "0"}, "--chats and --turns must be 1 or more", exitUsage},
	} {
		r := runProgram(t, nil, nil, append([]string{"bench", "forks"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.stderr, test.says) {
			t.Errorf("%q: exit code %d, %q", test.args, r.code, r.stderr)
		}
	}
}

// The chat that the figure is worked out on leaves nothing in the database.
func TestBenchCache(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	plain := mustRun(t, env, "bench", "cache", "--turns", "5")
	for _, want := range []string{"5 turns of ", "; 0 compactions by nobody", "\n| ours ", "\n| sliding window of the same size |"} {
		if !strings.Contains(plain, want) {
			t.Errorf("%q is not in\n%s", want, plain)
		}
	}
	var report bench.CacheReport
	if err := json.Unmarshal([]byte(mustRun(t, env, "bench", "cache", "--turns", "5", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Messages != 11 || report.Ours.Tokens == 0 || report.Ours != report.Sliding {
		t.Errorf("%+v", report)
	}
	if list := mustRun(t, env, "list", "--json"); !strings.Contains(list, `"data": []`) && !strings.Contains(list, `"data":[]`) {
		t.Errorf("something is left: %s", list)
	}
}

// The smallest part of the harness runs against a server of its own, and leaves
// nothing behind. No figure is looked at: TestBenchAll runs the other parts.
func TestBenchSpeed(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	var report speed.Report
	if err := json.Unmarshal([]byte(mustRun(t, []string{"COPPICE_BENCH_DATABASE_URL=" + url}, "bench", "tree", "--quick", "--json")), &report); err != nil {
		t.Fatal(err)
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
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docs, "performance.md"), page, 0o644); err != nil {
		t.Fatal(err)
	}
	url := dbtest.URL(t)
	env := []string{"COPPICE_BENCH_DATABASE_URL=" + url}
	var report speed.Report
	if err := json.Unmarshal([]byte(mustRun(t, env, "bench", "all", "--quick", "--json", "--out", docs)), &report); err != nil {
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
	after, err := os.ReadFile(filepath.Join(docs, "performance.md"))
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
	if err := os.WriteFile(filepath.Join(docs, "performance.md"), []byte("# Performance\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"append", "--rounds", "0"}, "--rounds, --slice and --largest-database must be", exitUsage},
		{[]string{"growth", "--axis", "width"}, "--axis must be one of", exitUsage},
		{[]string{"all", "--out", docs}, "has no place for the tables of machine", exitFailed},
	} {
		r := runProgram(t, nil, nil, append([]string{"bench"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.stderr, test.says) {
			t.Errorf("%q: exit code %d, %q", test.args, r.code, r.stderr)
		}
	}
}
