package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// TestDemoStaysPruned holds that a start imports the demonstration once: what was
// pruned of it doesn't come back.
func TestDemoStaysPruned(t *testing.T) {
	t.Parallel()
	store, log := tree.New(dbtest.New(t)), slog.New(slog.DiscardHandler)
	heads := func() (n int) {
		page := check.Must(store.Branches(t.Context(), demoID, tree.Paging{}))(t)
		return len(page.Data)
	}
	check.NoError(t, importDemo(t.Context(), store, log))
	before := heads()
	c := check.Must(store.Conversation(t.Context(), demoID))(t)
	check.Must(store.Prune(t.Context(), demoID, c.HeadID))(t)
	check.NoError(t, importDemo(t.Context(), store, log))
	after := heads()
	check.That(t, after == before-1, "%d branches, and %d after a prune and another start", before, after)
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
