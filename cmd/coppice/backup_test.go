package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// all is every row of the tables that hold what is to last, as text. What
// River's programs tell each other about themselves is not among them.
func all(t *testing.T, url string, tables ...string) (rows []string) {
	t.Helper()
	if len(tables) == 0 {
		tables = []string{"conversations", "nodes", "compactions", "api_keys", "river_job", "river_migration", "goose_db_version"}
	}
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, table := range tables {
		query := fmt.Sprintf("select '%s ' || t::text from (select * from %[1]s) t", table)
		if strings.HasPrefix(table, "select ") {
			query = "select t::text from (" + table + ") t"
		}
		found := check.Must(conn.Query(t.Context(), query))(t)
		texts := check.Must(pgx.CollectRows(found, pgx.RowTo[string]))(t)
		check.Need(t, len(texts) != 0, "there is nothing in %s to compare", table)
		rows = append(rows, texts...)
	}
	slices.Sort(rows)
	return rows
}

// same fails where two databases differ.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	without := func(a, b []string) (out []string) {
		for _, row := range a {
			if _, there := slices.BinarySearch(b, row); !there {
				out = append(out, row[:min(len(row), 300)])
			}
		}
		return out[:min(len(out), 5)]
	}
	t.Errorf("%s: %d rows, want %d;\nfor example added\n%s\nand missing\n%s", what, len(got), len(want),
		strings.Join(without(got, want), "\n"), strings.Join(without(want, got), "\n"))
}

// plantWood fills a running server with all that a backup has to bring back,
// and stops it when background work is done: imports, edits,
// pins, a fork, a prune, settings, summaries of both kinds, a second tenant, keys.
func plantWood(t *testing.T, env []string) {
	t.Helper()
	s := serve(t, env)
	mustRun(t, env, "import", hedgeFile, "testdata/cli/agent.jsonl", "../../testdata/coppice.jsonl")
	mustRun(t, env, "import", "--tenant", "acme", "../../testdata/oasst.jsonl")
	path := newTalk(t, s.url)
	mustTalk(t, s.url, path, 12)
	check.Eventually(t, "a compaction in the background", func() bool { return len(look(t, s.url, path).saved) > 0 })
	var page struct {
		Data []struct {
			ID       uuid.UUID
			ParentID *uuid.UUID `json:"parent_id"`
		}
	}
	call(t, http.MethodGet, s.url+path+"/branches/active/transcript?limit=6", nil, http.StatusOK, &page)
	fourth, fifth := page.Data[3], page.Data[4]
	for _, text := range []string{"An edit, “quoted”", "Another one\nwith lines 🌳"} {
		call(t, http.MethodPost, s.url+path+"/messages", map[string]any{"parent_id": fifth.ParentID, "role": "user", "content": []any{map[string]any{"type": "text", "text": text}},
			"pinned": true, "metadata": map[string]any{"of": text, "n": json.RawMessage("1.50")}}, http.StatusCreated, nil)
	}
	var gone struct{ ID uuid.UUID }
	call(t, http.MethodPost, s.url+path+"/messages", map[string]any{"parent_id": fourth.ParentID, "role": "assistant", "content": "To be pruned"}, http.StatusCreated, &gone)
	call(t, http.MethodDelete, s.url+path+"/messages/"+gone.ID.String(), nil, http.StatusOK, nil)
	call(t, http.MethodPost, s.url+path+"/messages/"+fifth.ID.String()+"/fork", map[string]any{"title": "A fork"}, http.StatusCreated, nil)
	call(t, http.MethodPatch, s.url+path, map[string]any{"title": "Oaks & <hazels>", "metadata": map[string]any{"z": 1, "a": nil}, "head_id": fourth.ID}, http.StatusOK, nil)
	mustRun(t, env, "compact", "Oaks & <hazels>", "--keep-recent", "2", "--instructions", "Mind the oaks.", "--summary-target-tokens", "40")
	mustRun(t, env, "keys", "create", "a phone")
	mustRun(t, env, "keys", "create", "--tenant", "acme", "an old one")
	var keys struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(mustRun(t, env, "keys", "list", "--json", "--tenant", "acme")), &keys); err != nil || len(keys.Data) != 1 {
		t.Fatal(keys, err)
	}
	mustRun(t, env, "keys", "revoke", keys.Data[0].ID)
	s.signal(t, syscall.SIGTERM)
	code := s.wait(t)
	check.Need(t, code == 0, "exit code %d", code)
}

// TestKept fills a data directory once, and holds what operate.md promises of it:
// a backup restores every row, an export brings the conversations back, and an upgrade
// to a newer Postgres keeps every row.
func TestKept(t *testing.T) {
	t.Parallel()
	check.Long(t)
	dir := usedDataDir(t)
	plantWood(t, []string{"COPPICE_DATA_DIR=" + dir})
	t.Run("backup", func(t *testing.T) { checkBackup(t, dir) })
	t.Run("export", func(t *testing.T) { checkExport(t, dir) })
	t.Run("upgrade", func(t *testing.T) { checkUpgrade(t, dir) })
}

// idle serves a data directory without background work until stop is called.
func idle(t *testing.T, dir string) (url string, stop func()) {
	t.Helper()
	s := serve(t, nil, "--data-dir", dir, "--compaction-workers", "0")
	return attachURL(t, dir), func() {
		s.signal(t, syscall.SIGTERM)
		s.wait(t)
	}
}

// checkBackup backs a server up while it runs, into a private Postgres of its own.
func checkBackup(t *testing.T, first string) {
	url, stop := idle(t, first)
	defer stop()
	execute(t, url, `insert into river_job (kind, args, metadata, queue, state, max_attempts, priority, scheduled_at, created_at)
		values ('compaction', '{"tenant_id":"default"}', '{}', 'default', 'scheduled', 6, 1, now() + interval '1 day', now())`)
	file, second := filepath.Join(t.TempDir(), "coppice.backup"), newDataDir(t)
	mustRun(t, []string{"COPPICE_DATA_DIR=" + first}, "backup", file)
	tables := []string{"conversations", "nodes", "compactions", "api_keys", "installation", "river_job"}
	want := all(t, url, tables...)
	mustRun(t, []string{"COPPICE_DATA_DIR=" + second}, "restore", file)
	restored, stopSecond := idle(t, second)
	defer stopSecond()
	same(t, "backup", all(t, restored, tables...), want)
}

// checkExport holds the export to the manual's table: everything of conversations and
// nodes comes back but the time of the last change, and summaries are marked as
// imported. Records of compactions, and keys, don't come back.
func checkExport(t *testing.T, dir string) {
	from, to := []string{"COPPICE_DATA_DIR=" + dir}, dbtest.URL(t)
	for _, tenant := range []string{"default", "acme"} {
		file := filepath.Join(t.TempDir(), "all.jsonl")
		mustRun(t, from, "export", "--all", "--tenant", tenant, "--output", file)
		mustRun(t, []string{"DATABASE_URL=" + to}, "import", "--tenant", tenant, file)
	}
	url, stop := idle(t, dir)
	defer stop()
	const conversations = "select id, tenant_id, title, metadata, settings, head_id, message_count, created_at from conversations"
	const nodes = "select conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, prefix_id, pinned, created_at, body, metadata, last_summarized_id, prior_summary_id, kept_ids, model from nodes"
	same(t, "export", all(t, to, conversations, nodes), all(t, url, conversations, nodes))
	const summaries = "select id from nodes where kind = 'summary'"
	same(t, "marks of", all(t, to, summaries+" and origin ->> 'format' = 'coppice'"), all(t, url, summaries))
}

// checkUpgrade moves a data directory to a newer Postgres, where one can be had.
func checkUpgrade(t *testing.T, dir string) {
	version := check.Must(os.ReadFile(filepath.Join(dir, "cluster", "PG_VERSION")))(t)
	from := strings.TrimSpace(string(version))
	if from >= "18" {
		t.Skipf("PostgreSQL %s is installed, so there is no newer one to move to", from)
	}
	env := []string{"COPPICE_DATA_DIR=" + dir}
	url, stop := idle(t, dir)
	if r := runProgram(t, env, nil, "upgrade"); r.code != exitFailed || !strings.Contains(r.stderr, "in use by process") {
		t.Errorf("beside a server: exit code %d, %s", r.code, r.stderr)
	}
	want := all(t, url)
	stop()

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
	url, stop = idle(t, dir)
	same(t, "upgrade", all(t, url), want)
	stop()
	check.Has(t, "once more", mustRun(t, env, "upgrade"), "nothing newer")
}

// execute carries out a statement.
func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	check.Must(conn.Exec(t.Context(), statement))(t)
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
		check.That(t, r.code == test.code && strings.Contains(r.stderr, test.want) && r.stdout == "",
			"%q: exit code %d, %q", test.args, r.code, r.stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused upgrade made the data directory")
	}
}
