package coppice_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// documents are all documents, in groups of one reader each, with the KiB that
// this reader finishes. A new document needs a place here.
var documents = []struct {
	kib   int
	files []string
}{
	{7, []string{"README.md"}},
	{8, []string{"docs/start.md"}},
	{14, []string{"docs/concepts.md"}},
	{12, []string{"docs/rest.md"}},
	{12, []string{"docs/openai.md"}},
	{5, []string{"docs/anthropic.md"}},
	{6, []string{"docs/go.md"}},
	{8, []string{"docs/mcp.md", "docs/page.md"}},
	{11, []string{"docs/summaries.md"}},
	{52, []string{"docs/install.md", "docs/configuration.md", "docs/operate.md", "docs/errors.md"}},
	{8, []string{"docs/benchmarks.md"}},
	{6, []string{"docs/reliability.md"}},
	{26, []string{"docs/architecture.md", "docs/design.md"}},
	{1, []string{"CHANGELOG.md"}},
	{12, []string{
		"CONTRIBUTING.md", "SECURITY.md", "lab/README.md", "examples/README.md",
		"clients/ts/README.md", "clients/ai-sdk/README.md", "clients/assistant-ui/README.md",
	}},
}

// allKiB is the most that all documents have together.
const allKiB = 175

// TestSizesOfDocuments holds each document to the size that its reader finishes.
func TestSizesOfDocuments(t *testing.T) {
	t.Parallel()
	listed, all := map[string]bool{}, 0
	for _, group := range documents {
		size := 0
		for _, name := range group.files {
			listed[name] = true
			size += len(read(t, name))
		}
		if all += size; size > group.kib<<10 {
			t.Errorf("%s: %.1f KiB, and the limit is %d", strings.Join(group.files, ", "), float64(size)/(1<<10), group.kib)
		}
	}
	if all > allKiB<<10 {
		t.Errorf("all documents: %.1f KiB, and the limit is %d", float64(all)/(1<<10), allKiB)
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "dist"):
			return fs.SkipDir
		case filepath.Ext(path) == ".md" && !listed[filepath.ToSlash(path)]:
			t.Errorf("%s has no size in docs_test.go", path)
		}
		return nil
	})
	check.NoError(t, err)
}

// eachDocument gives the name and the text of every document.
func eachDocument(t *testing.T, f func(name, text string)) {
	t.Helper()
	for _, group := range documents {
		for _, name := range group.files {
			f(name, read(t, name))
		}
	}
}

// The files and headings that documents link to are there.
func TestLinksOfDocuments(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	eachDocument(t, func(name, text string) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if info, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if anchor != "" && !info.IsDir() && !anchors(read(t, path))[anchor] {
				t.Errorf("%s links to %s, a heading that isn't there", name, m[1])
			}
		}
	})
}

// anchors are a document's headings as GitHub turns them into link targets.
func anchors(markdown string) map[string]bool {
	found, drop := map[string]bool{}, regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(markdown, -1) {
		found[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}

// commandsOfDocuments asks the program for help on every command line of
// the documents, which it refuses where it doesn't know a flag or an argument;
// and looks whether flags and variables that stand within a sentence are there.
func commandsOfDocuments(t *testing.T, program string) {
	t.Parallel()
	const flagOrVariable = `--[a-z][a-z-]+|\bCOPPICE_[A-Z_]+\b`
	help := func(command ...string) string {
		out, err := exec.Command(program, append(command, "--help")...).CombinedOutput()
		if err != nil {
			t.Errorf("coppice %s --help: %v\n%s", strings.Join(command, " "), err, out)
		}
		return string(out)
	}
	there := names(help(), flagOrVariable)
	for command := range names(help(), `(?m)^  ([a-z]+(?: [a-z]+)?)\b`) {
		maps.Copy(there, names(help(strings.Fields(command)...), flagOrVariable))
	}
	ofCoppice := regexp.MustCompile(`^(--|(\./)?coppice |COPPICE_)`)
	eachDocument(t, func(name, text string) {
		for _, block := range fences(text) {
			if block.language != "sh" && block.language != "console" {
				continue
			}
			for _, args := range coppiceCommands(block.text) {
				help(slices.Concat([]string{"--help"}, args)...)
			}
		}
		for _, code := range inlineCode(text) {
			if !ofCoppice.MatchString(code) || name == "lab/README.md" {
				continue // of another program
			}
			for given := range names(code, flagOrVariable) {
				check.That(t, there[given] || strings.HasPrefix(given, "COPPICE_TEST_"),
					"%s names %s, which no command has", name, given)
			}
		}
	})
}
