package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// toolsOf gives the folder of the Postgres programs that a running private
// Postgres is one of. The package from npm has no pg_dump; a test that needs it
// is skipped then, and says so; CI sets COPPICE_REQUIRE_PG_DUMP, which makes that
// a failure.
func toolsOf(t *testing.T, dataDir string) string {
	t.Helper()
	options, err := os.ReadFile(filepath.Join(dataDir, "cluster", "postmaster.opts"))
	if err != nil {
		t.Fatal(err)
	}
	program, _, _ := strings.Cut(string(options), " ")
	dir := filepath.Dir(program)
	for _, tool := range []string{"pg_dump", "pg_restore", "psql"} {
		if _, err := os.Stat(filepath.Join(dir, tool)); err != nil {
			if os.Getenv("COPPICE_REQUIRE_PG_DUMP") != "" {
				t.Fatalf("the private Postgres came without %s: %v", tool, err)
			}
			t.Skipf("the private Postgres came without %s, so backups can't be tested here: %v. Install one that has it, by apt-get install postgresql for example", tool, err)
		}
	}
	return dir
}

// manualCommand gives the command of the manual's blocks that a pattern
// matches, as one line.
func manualCommand(t *testing.T, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(string(text), "")
	found := regexp.MustCompile("(?m)^ *(" + pattern + ".*)$").FindStringSubmatch(plain)
	if found == nil {
		t.Fatalf("operate.md has no command %s", pattern)
	}
	return found[1]
}

// carryOut has a shell carry a command of the manual out, with other paths.
func carryOut(t *testing.T, tools, dir, command string, replace ...string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", strings.NewReplacer(replace...).Replace(command))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Args[2], err, out)
	}
}

// all is every row of the tables that hold what is to last, as text. What
// River's programs tell each other about themselves is not among them.
func all(t *testing.T, url string, tables ...string) (rows []string) {
	t.Helper()
	if len(tables) == 0 {
		tables = []string{"conversations", "nodes", "compactions", "api_keys", "river_job", "river_migration", "goose_db_version"}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, table := range tables {
		query := fmt.Sprintf("select '%s ' || t::text from (select * from %[1]s) t", table)
		if strings.HasPrefix(table, "select ") {
			query = "select t::text from (" + table + ") t"
		}
		found, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		texts, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(texts) == 0 {
			t.Fatalf("there is nothing in %s to compare", table)
		}
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
// and stops it when background work is done: imports of every format, edits,
// pins, a fork, a prune, settings, summaries of both kinds, a second tenant, keys.
func plantWood(t *testing.T, env []string) {
	t.Helper()
	s := serve(t, env)
	for _, file := range []string{hedgeFile, "testdata/cli/agent.jsonl", "testdata/cli/orchard.jsonl", "../../testdata/chatgpt.json", "../../testdata/pi.jsonl", "../../testdata/coppice.jsonl"} {
		mustRun(t, env, "import", file)
	}
	mustRun(t, env, "import", "--tenant", "acme", "../../testdata/oasst.jsonl")
	path := newTalk(t, s.url)
	mustTalk(t, s.url, path, 20)
	eventually(t, "a compaction in the background", func() bool { return len(look(t, s.url, path).saved) > 0 })
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
	for _, args := range [][]string{{"create", "a phone"}, {"create", "--tenant", "acme", "acme's app"}, {"create", "an old one"}} {
		mustRun(t, env, append([]string{"keys"}, args...)...)
	}
	var keys struct{ Data []struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(mustRun(t, env, "keys", "list", "--json")), &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys.Data {
		if k.Name == "an old one" {
			mustRun(t, env, "keys", "revoke", k.ID)
		}
	}
	s.signal(t, syscall.SIGTERM)
	if code := s.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}

// TestBackup carries out what the manual says of backups on a private Postgres,
// and compares every row.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(usedDataDir(t))
	if err := os.Rename(filepath.Join(dir, "data"), filepath.Join(dir, "first")); err != nil {
		t.Fatal(err)
	}
	first := []string{"COPPICE_DATA_DIR=" + filepath.Join(dir, "first")}
	plantWood(t, first)
	s := serve(t, first, "--compaction-workers", "0")
	tools := toolsOf(t, filepath.Join(dir, "first"))
	url := attachURL(t, filepath.Join(dir, "first"))
	execute(t, url, `insert into river_job (kind, args, metadata, queue, state, max_attempts, priority, scheduled_at, created_at)
		values ('compaction', '{"tenant_id":"default"}', '{}', 'default', 'scheduled', 6, 1, now() + interval '1 day', now())`)

	socket := `"$HOME/.local/share/coppice/socket"`
	carryOut(t, tools, dir, manualCommand(t, "pg_dump --format=custom .*--host"), socket, filepath.Join(dir, "first", "socket"))
	carryOut(t, tools, dir, manualCommand(t, "pg_dump --format=plain"), "$DATABASE_URL", url)
	want := all(t, url)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
	exported := mustRun(t, first, "export", "--all") + mustRun(t, first, "export", "--all", "--tenant", "acme")

	// As the manual says, into a new private Postgres.
	second := []string{"COPPICE_DATA_DIR=" + filepath.Join(dir, "second")}
	s = serve(t, second, "--compaction-workers", "0")
	carryOut(t, tools, dir, manualCommand(t, "pg_restore --clean"), "/srv/coppice-new", filepath.Join(dir, "second"))
	restored := attachURL(t, filepath.Join(dir, "second"))
	same(t, "pg_restore over empty tables", all(t, restored), want)

	// And into databases of one's own, from both formats.
	for name, command := range map[string]string{"custom": "pg_restore --no-owner", "plain": "psql --quiet"} {
		execute(t, superuserURL(t, restored), "create database "+name+" owner coppice encoding 'UTF8' template template0")
		own := strings.Replace(restored, "/coppice?", "/"+name+"?", 1)
		if own == restored {
			t.Fatalf("%s has another form than expected", restored)
		}
		carryOut(t, tools, dir, manualCommand(t, command), "$DATABASE_URL", own)
		same(t, command, all(t, own), want)
		if version := mustRun(t, []string{"DATABASE_URL=" + own}, "migrate"); !strings.Contains(version, "up to date") {
			t.Errorf("%s: coppice migrate says %q", name, version)
		}
	}
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
	s = serve(t, second)
	s.signal(t, syscall.SIGTERM)
	s.wait(t)
	if again := mustRun(t, second, "export", "--all") + mustRun(t, second, "export", "--all", "--tenant", "acme"); again != exported {
		t.Error("after the restore and two starts, another export comes out")
	}

	// A copy of a directory on which nothing runs.
	if out, err := exec.Command("cp", "-a", filepath.Join(dir, "first"), filepath.Join(dir, "copy")).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	serve(t, []string{"COPPICE_DATA_DIR=" + filepath.Join(dir, "copy")}, "--compaction-workers", "0")
	same(t, "cp -a", all(t, attachURL(t, filepath.Join(dir, "copy"))), want)
}

// execute carries out a statement.
func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestExportRestores holds the export to the manual's table: everything of
// conversations and nodes comes back but the time of the last change, and that
// summaries are marked as imported. Compactions' records and keys don't.
func TestExportRestores(t *testing.T) {
	t.Parallel()
	from, to := dbtest.URL(t), dbtest.URL(t)
	plantWood(t, []string{"DATABASE_URL=" + from})
	for _, tenant := range []string{"default", "acme"} {
		file := filepath.Join(t.TempDir(), "all.jsonl")
		mustRun(t, []string{"DATABASE_URL=" + from}, "export", "--all", "--tenant", tenant, "--output", file)
		mustRun(t, []string{"DATABASE_URL=" + to}, "import", "--tenant", tenant, file)
	}
	const conversations = "select id, tenant_id, title, metadata, settings, head_id, message_count, created_at from conversations"
	const nodes = "select conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, prefix_id, pinned, created_at, body, search_text, metadata, last_summarized_id, prior_summary_id, kept_ids, model from nodes"
	same(t, "export", all(t, to, conversations, nodes), all(t, from, conversations, nodes))
	const summaries = "select id from nodes where kind = 'summary'"
	same(t, "marks of", all(t, to, summaries+" and origin ->> 'format' = 'coppice'"), all(t, from, summaries))

	contexts := func(url string) []string {
		s := serve(t, []string{"DATABASE_URL=" + url}, "--compaction-workers", "0")
		defer s.signal(t, syscall.SIGKILL)
		key := strings.TrimSpace(mustRun(t, []string{"DATABASE_URL=" + url}, "keys", "create", "a reader"))
		var read []string
		for _, head := range all(t, url, "select n.conversation_id, n.id from nodes n join conversations c on c.id = n.conversation_id where n.kind = 'message' and c.tenant_id = 'default'") {
			conversation, message, _ := strings.Cut(strings.Trim(head, "()"), ",")
			read = append(read, originOfSummary.ReplaceAllString(get(t, s.url+"/v1/conversations/"+conversation+"/branches/"+message+"/context", key), ""))
		}
		return read
	}
	if was, is := contexts(from), contexts(to); !slices.Equal(was, is) {
		t.Error("the contexts differ")
	}
}

// get reads what only a key opens.
func get(t *testing.T, url, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", url, res.StatusCode, err, body)
	}
	return string(body)
}
