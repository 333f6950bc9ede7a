package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
)

var hedgeFile = filepath.Join("testdata", "cli", "hedge.json")

// TestCommands runs one command after the other on one database, and compares
// what they print with the files in testdata/cli.
func TestCommands(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	knowSecret(t, url)
	env := []string{"DATABASE_URL=" + url}
	const agent, hedge = "testdata/cli/agent.jsonl", "A hedge for the shade"
	tests := []struct {
		name string
		args []string
	}{
		{"list_nothing", []string{"list"}},
		{"import", []string{"import", hedgeFile, agent}},
		{"import_again", []string{"import", hedgeFile}},
		{"import_unsound", []string{"import", "testdata/cli/unsound.json", "testdata/cli/nowhere.json"}},
		{"import_verbose_dry_run", []string{"import", "--dry-run", "-v", "testdata/cli/unsound.json"}},
		{"import_json", []string{"import", "--json", "testdata/cli/unsound.json"}},
		{"import_wrong_format", []string{"import", "--format", "oasst", agent}},
		{"import_folder", []string{"import", "testdata"}},
		{"import_folder_files", []string{"import", "--tenant", "folder", "testdata/cli/folder"}},
		{"import_folder_json", []string{"import", "--dry-run", "--json", "testdata/cli/folder", hedgeFile}},
		{"import_attachments_dry_run", []string{"import", "--dry-run", "testdata/cli/files.jsonl"}},
		{"import_attachments", []string{"import", "--tenant", "files", "testdata/cli/files.jsonl"}},
		{"list", []string{"list"}},
		{"list_limit", []string{"list", "--limit", "1"}},
		{"list_json", []string{"list", "--json", "--query", "hedge"}},
		{"list_no_match", []string{"list", "--query", "zebra"}},
		{"tree", []string{"tree", hedge}},
		{"tree_summary", []string{"tree", "01990000-0000-7000-8000-00000000000a"}},
		{"tree_json", []string{"tree", "--json", "01990000-0000-7000-8000-00000000000a"}},
		{"tree_empty", []string{"tree", "01990000-0000-7000-8000-00000000000b"}},
		{"tree_unknown", []string{"tree", "zebra"}},
		{"tree_ambiguous_title", []string{"tree", "Night watch"}},
		{"tree_ambiguous_id", []string{"tree", "0199"}},
		{"tree_other_tenant", []string{"tree", "--tenant", "other", hedge}},
		{"show", []string{"show", hedge}},
		{"show_agent", []string{"show", "01990000-0000-7000-8000-00000000000a"}},
		{"show_head", []string{"show", "01990000-0000-7000-8000-00000000000a", "01990000-0004"}},
		{"show_limit", []string{"show", "--limit", "2", hedge}},
		{"show_limit_json", []string{"show", "--limit", "2", "--json", "01990000-0000-7000-8000-00000000000a"}},
		{"show_empty", []string{"show", "01990000-0000-7000-8000-00000000000b"}},
		{"show_unknown_head", []string{"show", hedge, "ffffffff"}},
		{"search", []string{"search", "hazel"}},
		{"search_phrase", []string{"search", "-c", hedge, `"neighbour has"`}},
		{"search_titles", []string{"search", "hedge"}},
		{"search_ranked", []string{"search", "--sort", "relevance", "--limit", "2", "which", "hazel", "grows", "in", "shad"}},
		{"search_limit_json", []string{"search", "--json", "--limit", "1", "winter"}},
		{"search_nothing", []string{"search", "zebra"}},
		{"recall", []string{"recall", hedge, "What grows in half shade?"}},
		{"recall_tenant", []string{"recall", "--limit", "2", "What does the neighbour say about the hedge?"}},
		{"recall_json", []string{"recall", "--json", "--limit", "1", "--max-tokens", "60", hedge, "winter stems"}},
		{"recall_nothing", []string{"recall", "--scope", "folded", hedge, "hazel"}},
		{"recall_bad_scope", []string{"recall", "--scope", "all", hedge, "hazel"}},
		{"recall_no_words", []string{"recall", hedge, "?!"}},
		{"recall_unquoted", []string{"recall", hedge, "What", "grows?"}},
		{"recall_head_of_tenant", []string{"recall", "--scope", "branch", "hazel"}},
		{"export_markdown", []string{"export", "--format", "markdown", "01990000-0000-7000-8000-00000000000a"}},
		{"export_jsonl", []string{"export", "01990000-0000-7000-8000-00000000000a", "01990000-0000-7000-8000-00000000000b"}},
		{"export_attachments", []string{"export", "--tenant", "files", "Leaves"}},
		{"export_nothing", []string{"export"}},
		{"export_head_of_jsonl", []string{"export", "--head", "active", hedge}},
		{"keys_none", []string{"keys", "list"}},
		{"keys_create_no_name", []string{"keys", "create", " "}},
		{"keys_revoke_unknown", []string{"keys", "revoke", "01990000-0000-7000-8000-00000000000a"}},
		{"migrate", []string{"migrate"}},
		{"unreachable", []string{"list", "--database-url", "postgres://ada:secret@127.0.0.1:1/none"}},
		{"unreachable_serve", []string{"serve", "--addr", "127.0.0.1:0", "--database-url", "postgres://ada:secret@127.0.0.1:1/none"}},
		{"bad_url_migrate", []string{"migrate", "--database-url", "nonsense"}},
		{"usage", []string{"show"}},
		{"usage_keys", []string{"keys", "create"}},
		{"unknown_flag", []string{"search", "hazel", "-willow"}},
		{"unknown_command", []string{"chop"}},
	}
	for _, tt := range tests {
		r := runProgram(t, env, nil, tt.args...)
		golden(t, tt.name, commandText(tt.args, r))
	}
}

// knowSecret gives an installation a secret that is the same in each run, so that
// the ids that derive from it are.
func knowSecret(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "update installation set secret = sha256('a secret')"); err != nil {
		t.Fatal(err)
	}
}

// What changes from run to run, or with each migration.
var (
	schemaAt   = regexp.MustCompile(`at version \d+`)
	updatedAt  = regexp.MustCompile(`"updated_at":"[^"]*"`)
	importedAt = regexp.MustCompile(`"imported_at":"[^"]*"`)
	listTime   = regexp.MustCompile(`(?m)^([0-9a-f-]{8,}  )20\d\d-\d\d-\d\d \d\d:\d\d  `)
)

func commandText(args []string, r result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$ coppice %s\n", strings.Join(quoted(args), " "))
	out := updatedAt.ReplaceAllString(r.stdout, `"updated_at":"…"`)
	out = importedAt.ReplaceAllString(out, `"imported_at":"…"`)
	out = listTime.ReplaceAllString(out, "${1}1970-01-01 00:00  ")
	b.WriteString(schemaAt.ReplaceAllString(out, "at version N"))
	if r.stderr != "" {
		b.WriteString("--- standard error\n" + r.stderr)
	}
	if r.code != 0 {
		fmt.Fprintf(&b, "--- exit code %d\n", r.code)
	}
	return b.String()
}

func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if strings.ContainsAny(a, ` "`) {
			a = "'" + a + "'"
		}
		out[i] = filepath.ToSlash(a)
	}
	return out
}

// Who types the program's name alone is told what there is.
func TestBareCommand(t *testing.T) {
	t.Parallel()
	if out := mustRun(t, nil); !strings.HasPrefix(out, "Usage: coppice <command>") {
		t.Errorf("coppice without arguments says:\n%s", out)
	}
}

// The first key closes a server that was open, which whoever makes it should
// know.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	for _, first := range []bool{true, false} {
		r := runProgram(t, env, nil, "keys", "create", "a phone")
		if r.code != 0 || strings.Contains(r.stderr, "every request needs one") != first {
			t.Errorf("first key: %v, exit code %d\n%s", first, r.code, r.stderr)
		}
		if !strings.HasPrefix(r.stdout, "cop_") || strings.Count(r.stdout, "\n") != 1 {
			t.Errorf("standard output is not the key alone: %q", r.stdout)
		}
	}
}

// originOfSummary is what a database says of a summary that was imported, in an
// export or in a context.
var originOfSummary = regexp.MustCompile(`"origin":(null|\{"imported_at":[^{}]*\}),`)

// What export writes, import takes, and then exports the same.
func TestExportImport(t *testing.T) {
	t.Parallel()
	first := []string{"DATABASE_URL=" + dbtest.URL(t)}
	mustRun(t, first, "import", hedgeFile, "testdata/cli/agent.jsonl")
	file := filepath.Join(t.TempDir(), "all.jsonl")
	mustRun(t, first, "export", "--all", "-o", file)

	second := []string{"DATABASE_URL=" + dbtest.URL(t)}
	if out := mustRun(t, second, "import", file); !strings.Contains(out, "3 conversations, 20 messages, 1 summary") {
		t.Errorf("import of the export says:\n%s", out)
	}
	for _, name := range []string{"01990000-0000-7000-8000-00000000000a", "A hedge for the shade"} {
		want := originOfSummary.ReplaceAllString(mustRun(t, first, "export", name), "")
		if got := originOfSummary.ReplaceAllString(mustRun(t, second, "export", name), ""); got != want {
			t.Errorf("%s: exported again it differs\ngot:\n%s\nwant:\n%s", name, got, want)
		}
	}
}
