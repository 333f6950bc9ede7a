package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// The list leaves archived conversations out unless they are asked for, and an
// export of all has them, with their order.
func TestListArchived(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	env := []string{"DATABASE_URL=" + url}
	mustRun(t, env, "migrate")
	pool, err := db.Open(t.Context(), db.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store := tree.New(pool)
	for title, order := range map[string]tree.Order{
		"put away": {Archived: true, Tags: []string{"wood", "old"}}, "at hand": {Tags: []string{"wood"}}, "on top": {Pinned: true}, "bare": {},
	} {
		if _, _, err := store.CreateConversation(t.Context(), tree.NewConversation{Title: title, Order: order}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "all.jsonl")
	mustRun(t, env, "export", "--all", "-o", file)
	second := []string{"DATABASE_URL=" + dbtest.URL(t)}
	mustRun(t, second, "import", file)
	for _, env := range [][]string{env, second} {
		for args, want := range map[string]string{
			"":                        "on top,at hand,bare",
			"--archived":              "put away",
			"--tag wood":              "at hand",
			"--tag wood --archived":   "put away",
			"--tag none":              "",
			"--query away":            "",
			"--query away --archived": "put away",
		} {
			out := mustRun(t, env, append([]string{"list"}, strings.Fields(args)...)...)
			for _, title := range []string{"put away", "at hand", "on top", "bare"} {
				if strings.Contains(out, title) != strings.Contains(want, title) {
					t.Errorf("list %s shows\n%s, want %s", args, out, want)
				}
			}
			if first, _, _ := strings.Cut(want, ","); want != "" && first == "on top" && strings.Index(out, first) > strings.Index(out, "bare") {
				t.Errorf("the pinned one doesn't stand first:\n%s", out)
			}
		}
	}
}
