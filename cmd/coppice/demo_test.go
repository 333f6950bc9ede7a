package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestDemoStaysPruned holds that a start imports the demonstration once: what was
// pruned of it doesn't come back.
func TestDemoStaysPruned(t *testing.T) {
	t.Parallel()
	store, log := tree.New(dbtest.New(t)), slog.New(slog.DiscardHandler)
	heads := func() (n int) {
		page, err := store.Branches(t.Context(), demoID, tree.Paging{})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Data)
	}
	if err := importDemo(t.Context(), store, log); err != nil {
		t.Fatal(err)
	}
	before := heads()
	c, err := store.Conversation(t.Context(), demoID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Prune(t.Context(), demoID, c.HeadID); err != nil {
		t.Fatal(err)
	}
	if err := importDemo(t.Context(), store, log); err != nil {
		t.Fatal(err)
	}
	if after := heads(); after != before-1 {
		t.Errorf("%d branches, and %d after a prune and another start", before, after)
	}
}

// TestNoData holds that a command on what is there makes no database in a directory
// that doesn't exist.
func TestNoData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mistyped")
	r := runProgram(t, nil, nil, "list", "--data-dir", dir)
	if _, err := os.Stat(dir); err == nil || r.code != exitFailed || !strings.Contains(r.stderr, "--data-dir") {
		t.Errorf("exit code %d, %s; the directory is there: %t", r.code, r.stderr, err == nil)
	}
}
