package coppice_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestDocuments carries out the commands of README.md and docs/start.md, and runs
// the program of docs/go.md. Each prints what the document shows. The program knows the
// commands of all documents.
func TestDocuments(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "coppice")
	out, err := exec.Command("go", "build", "-o", program, "./cmd/coppice").CombinedOutput()
	check.Need(t, err == nil, "go build: %v\n%s", err, out)
	for _, document := range []string{"README.md", "docs/start.md"} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			follow(t, document, newShell(t, program, "DATABASE_URL="+dbtest.URL(t)))
		})
	}
	t.Run("docs/go.md", libraryExample)
	t.Run("commands", func(t *testing.T) { commandsOfDocuments(t, program) })
}

// follow carries out the commands of a document one after the other, and
// compares what they print. README.md starts the server in a block without
// output, so the server is started for a document that doesn't show its log.
func follow(t *testing.T, document string, s *shell) {
	t.Helper()
	steps := transcript(t, document)
	if !slices.ContainsFunc(steps, step.serves) {
		s.run("go run ./cmd/coppice serve --demo")
	}
	for _, step := range steps {
		got := s.run(step.command)
		if step.serves() {
			step.output = logLines(step.output)
		}
		check.Need(t, matches(got, step.output),
			"%s: $ %s\ngot:\n%s\n%s has:\n%s", document, step.command, got, document, step.output)
	}
}

// logLines allows other lines between the lines of a log. It drops the lines
// about Postgres, because the test's server has a database and starts none.
func logLines(shown string) string {
	shown = regexp.MustCompile(`(?m)^.*(Postgres|migrated).*\n`).ReplaceAllString(shown, "")
	return "…\n" + strings.ReplaceAll(shown, "\n", "\n…\n")
}

// libraryExample runs the first Go program of docs/go.md, and compares its output
// with the block of text after the program.
func libraryExample(t *testing.T) {
	t.Parallel()
	const document = "docs/go.md"
	blocks := fences(read(t, document))
	i := slices.IndexFunc(blocks, func(b fence) bool { return b.language == "go" && strings.HasPrefix(b.text, "package main\n") })
	check.Need(t, i >= 0 && i+1 != len(blocks) && blocks[i+1].language == "text",
		"%s has no Go program with its output after it", document)
	file := filepath.Join(t.TempDir(), "main.go")
	check.NoError(t, os.WriteFile(file, []byte(blocks[i].text), 0o600))
	cmd := exec.Command("go", "run", file)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+dbtest.URL(t))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, stderr.Bytes())
	}
	got, want := string(out), blocks[i+1].text
	check.That(t, matches(got, want), "got:\n%s\n%s has:\n%s", got, document, want)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := check.Must(os.ReadFile(path))(t)
	return string(text)
}

// names are what a pattern, or its group, finds in a text.
func names(text, pattern string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[m[len(m)-1]] = true
	}
	return found
}
