package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUpgrade moves a data directory that holds some of everything to a newer
// Postgres, and compares every row.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dir := usedDataDir(t)
	version, err := os.ReadFile(filepath.Join(dir, "cluster", "PG_VERSION"))
	if err != nil {
		t.Fatal(err)
	}
	from := strings.TrimSpace(string(version))
	if from >= "18" {
		t.Skipf("PostgreSQL %s is installed, so there is no newer one to move to", from)
	}
	env := []string{"COPPICE_DATA_DIR=" + dir}
	plantWood(t, env)
	exported := mustRun(t, env, "export", "--all")

	s := serve(t, env, "--compaction-workers", "0")
	if r := runProgram(t, env, nil, "upgrade"); r.code != exitFailed || !strings.Contains(r.stderr, "in use by process") {
		t.Errorf("beside a server: exit code %d, %s", r.code, r.stderr)
	}
	want := all(t, attachURL(t, dir))
	s.signal(t, syscall.SIGTERM)
	s.wait(t)

	var moved struct {
		From, To, Kept string
		Tables, Rows   int
	}
	r := runProgram(t, env, nil, "upgrade", "--json")
	if strings.Contains(r.stderr, "was found to upgrade to") && os.Getenv("COPPICE_REQUIRE_POSTGRES_VERSIONS") == "" {
		t.Skip(r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), &moved); err != nil {
		t.Fatalf("%v: %s", err, r.stderr)
	}
	if !strings.HasPrefix(moved.From, from+".") || moved.To <= moved.From || moved.Tables < 10 || moved.Rows < len(want) || moved.Kept != filepath.Join(dir, "cluster-"+from) {
		t.Errorf("it says %+v", moved)
	}
	s = serve(t, env, "--compaction-workers", "0")
	same(t, "upgrade", all(t, attachURL(t, dir)), want)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
	if again := mustRun(t, env, "export", "--all"); again != exported {
		t.Error("after the upgrade another export comes out")
	}
	if text := mustRun(t, env, "upgrade"); !strings.Contains(text, "nothing newer") {
		t.Errorf("once more: %q", text)
	}
}

func TestUpgradeRefuses(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--database-url", "postgres://db.example/x"}, exitUsage, "pg_upgrade"},
		{[]string{"--data-dir", dir}, exitFailed, "there is no Postgres cluster in this data directory"},
		{[]string{"--data-dir", dir, "--to", "x"}, exitUsage, "--to"},
	} {
		r := runProgram(t, nil, nil, append([]string{"upgrade"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.stderr, test.want) || r.stdout != "" {
			t.Errorf("%q: exit code %d, %q", test.args, r.code, r.stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused upgrade made the data directory")
	}
}
