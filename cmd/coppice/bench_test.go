package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/bench"
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
