// Package examples_test runs the client examples against a server.
package examples_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

const offline = "I am the offline model: no language model is set up, so nobody understood this. I was given %d messages. You said: “Which apples keep until %s?”\n"

// want is what both examples print.
var want = "appended 9 messages\n" +
	fmt.Sprintf(offline, 10, "March") +
	fmt.Sprintf(offline, 10, "May") +
	`version 2 of 2
2 branches
a model reads 11 messages; 0 are folded
compaction: saved
a model reads 5 messages; 8 are folded
problem: conversation_not_found
`

func TestPython(t *testing.T) {
	t.Parallel()
	run(t, "python3", "python/coppice.py")
}

// Node runs TypeScript from 22.18 on. An older one gets what esbuild makes of the example.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	node := find(t, "node")
	script := "typescript/coppice.ts"
	if exec.CommandContext(t.Context(), node, "--eval", "process.exit(process.features.typescript ? 0 : 1)").Run() != nil {
		esbuild := find(t, filepath.Join("..", "web", "node_modules", ".bin", "esbuild"))
		stripped := filepath.Join(t.TempDir(), "coppice.mjs")
		out, err := exec.CommandContext(t.Context(), esbuild, script, "--outfile="+stripped).CombinedOutput()
		check.Need(t, err == nil, "esbuild: %v\n%s", err, out)
		script = stripped
	}
	run(t, node, script)
}

// find skips the test where a program is missing, unless CI wants every example
// to run.
func find(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		check.Need(t, os.Getenv("COPPICE_REQUIRE_EXAMPLES") == "", "%v", err)
		t.Skip(err)
	}
	return path
}

// run starts a server with the offline model, and runs an example against it.
func run(t *testing.T, program, script string) {
	t.Helper()
	program = find(t, program)
	c, err := app.Open(t.Context(), app.Config{Database: app.DatabaseConfig{URL: dbtest.URL(t)}})
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	check.NoError(t, c.Start(t.Context()))
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, script, web.URL)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\ngot\n%s\nwant\n%s", err, errors.String(), out, want)
	}
}
