//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// A pipe in a folder is named and not waited for.
func TestImportLeavesPipesOut(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	check.NoError(t, os.WriteFile(filepath.Join(folder, "chat.json"), []byte(`[{"role":"user","content":"hi"}]`), 0o600))
	check.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600))
	r := runProgram(t, nil, nil, "import", "--dry-run", folder)
	if r.code != 0 || !strings.Contains(r.stderr, "1 pipe, socket or device left out (name one that is to be read): pipe.json") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
