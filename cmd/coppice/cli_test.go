package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// golden compares got with the file testdata/cli/name.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	check.Golden(t, filepath.Join("testdata", "cli", filepath.FromSlash(name)+".txt"), got)
}

var hedgeFile = filepath.Join("testdata", "cli", "hedge.json")

// Commands run one after the other, and print what the files in testdata/cli have.
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
		{"import_json", []string{"import", "--json", "testdata/cli/unsound.json"}},
		{"import_wrong_format", []string{"import", "--format", "oasst", agent}},
		{"import_folder", []string{"import", "testdata"}},
		{"import_folder_files", []string{"import", "--tenant", "folder", "testdata/cli/folder"}},
		{"import_attachments_dry_run", []string{"import", "--dry-run", "testdata/cli/files.jsonl"}},
		{"import_attachments", []string{"import", "--tenant", "files", "testdata/cli/files.jsonl"}},
		{"list", []string{"list"}},
		{"list_limit", []string{"list", "--limit", "1"}},
		{"list_watch_json", []string{"list", "--watch", "--json"}},
		{"list_json", []string{"list", "--json", "--query", "hedge"}},
		{"tree", []string{"tree", hedge}},
		{"tree_json", []string{"tree", "--json", "01990000-0000-7000-8000-00000000000a"}},
		{"tree_unknown", []string{"tree", "zebra"}},
		{"tree_ambiguous_title", []string{"tree", "Night watch"}},
		{"show", []string{"show", hedge}},
		{"show_agent", []string{"show", "01990000-0000-7000-8000-00000000000a"}},
		{"show_head", []string{"show", "01990000-0000-7000-8000-00000000000a", "01990000-0004"}},
		{"show_limit_json", []string{"show", "--limit", "2", "--json", "01990000-0000-7000-8000-00000000000a"}},
		{"show_unknown_head", []string{"show", hedge, "ffffffff"}},
		{"search", []string{"search", "hazel"}},
		{"search_phrase", []string{"search", "-c", hedge, `"neighbour has"`}},
		{"search_titles", []string{"search", "hedge"}},
		{"search_ranked", []string{"search", "--sort", "relevance", "--limit", "2", "which", "hazel", "grows", "in", "shad"}},
		{"search_limit_json", []string{"search", "--json", "--limit", "1", "winter"}},
		{"search_nothing", []string{"search", "--since", "2026-03-02", "--before", "2026-03-02T08:00:00Z", "hazel"}},
		{"recall", []string{"recall", hedge, "What grows in half shade?"}},
		{"recall_tenant", []string{"recall", "--limit", "2", "What does the neighbour say about the hedge?"}},
		{"recall_json", []string{"recall", "--json", "--limit", "1", "--max-tokens", "60", hedge, "winter stems"}},
		{"recall_nothing", []string{"recall", "--scope", "folded", hedge, "hazel"}},
		{"export_markdown", []string{"export", "--format", "markdown", "01990000-0000-7000-8000-00000000000a"}},
		{"export_jsonl", []string{"export", "01990000-0000-7000-8000-00000000000a", "01990000-0000-7000-8000-00000000000b"}},
		{"export_attachments", []string{"export", "--tenant", "files", "Leaves"}},
		{"export_head_of_jsonl", []string{"export", "--head", "active", hedge}},
		{"export_chats", []string{"export", "--all", "--format", "sillytavern"}},
		{"tenants_list", []string{"tenants", "list", "--json"}},
		{"tenants_show_json", []string{"tenants", "show", "--json", "files"}},
		{"tenants_limits", []string{"tenants", "limits", "files", "--messages", "5000", "--cost", "2.5"}},
		{"tenants_delete", []string{"tenants", "delete", "--yes", "files"}},
		{"tenants_show_unknown", []string{"tenants", "show", "files"}},
		{"delete", []string{"delete", "--yes", "01990000-0000-7000-8000-00000000000b"}},
		{"delete_old", []string{"delete", "--yes", "--tenant", "folder", "--older-than", "30d"}},
		{"delete_what", []string{"delete"}},
		{"keys_none", []string{"keys", "list"}},
		{"migrate", []string{"migrate"}},
		{"unreachable", []string{"list", "--database-url", "postgres://ada:secret@127.0.0.1:1/none"}},
		{"unknown_flag", []string{"search", "hazel", "-willow"}},
		{"unknown_command", []string{"chop"}},
	}
	for _, tt := range tests {
		r := runProgram(t, env, nil, tt.args...)
		golden(t, tt.name, commandText(tt.args, r))
	}
	folder := filepath.Join(t.TempDir(), "chats") + "/"
	runProgram(t, env, nil, "export", "--all", "--format", "llama.cpp", "--output", folder)
	var names strings.Builder
	files, err := os.ReadDir(folder)
	for _, f := range files {
		names.WriteString(f.Name() + "\n")
	}
	check.NoError(t, err)
	golden(t, "export_folder", names.String())
}

// knowSecret gives an installation a secret that is the same in each run, so that
// the ids that derive from it are.
func knowSecret(t *testing.T, url string) {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(context.Background())
	check.Must(conn.Exec(t.Context(), "update installation set secret = sha256('a secret')"))(t)
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

// The first key closes a server that was open. It says so.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	for _, first := range []bool{true, false} {
		r := runProgram(t, env, nil, "keys", "create", "a phone")
		check.That(t, r.code == 0 && strings.Contains(r.stderr, "every request needs one") == first,
			"first key: %v, exit code %d\n%s", first, r.code, r.stderr)
		check.That(t, strings.HasPrefix(r.stdout, "cop_") && strings.Count(r.stdout, "\n") == 1,
			"standard output is not the key alone: %q", r.stdout)
	}
}

// Archived conversations are listed where they are asked for, and those of a tag.
func TestListArchived(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	pool := check.Must(db.Open(t.Context(), db.Config{URL: url}))(t)
	defer pool.Close()
	for title, order := range map[string]tree.Order{"put away": {Archived: true, Tags: []string{"wood"}}, "at hand": {Tags: []string{"wood"}}, "on top": {Pinned: true}} {
		check.Must3(tree.New(pool).CreateConversation(t.Context(), tree.NewConversation{Title: title, Order: order}))(t)
	}
	for args, want := range map[string]string{"": "on top,at hand", "--archived": "put away", "--tag wood": "at hand", "--query away --archived": "put away"} {
		var got []string
		for line := range strings.Lines(mustRun(t, []string{"DATABASE_URL=" + url}, append([]string{"list"}, strings.Fields(args)...)...)) {
			for _, title := range []string{"put away", "at hand", "on top"} {
				if strings.Contains(line, title) {
					got = append(got, title)
				}
			}
		}
		check.That(t, strings.Join(got, ",") == want, "list %s shows %q, want %s", args, got, want)
	}
}
